// The registry as JSON: what `kw list --json` prints and the Python faces register from.
//
//   {"version": "0.1.0", "ops": [{
//     "index": 0, "name": "rms_norm", "room": "rms_norm", "contract": "rms_norm(x: ...", "capturable": true, "backward_of": null,
//     "dims": [{"name": "B", "variadic": true}, {"name": "N", "variadic": false}],
//     "types": [{"name": "T", "options": ["f16", "bf16", ...]}, {"name": "W", "options": [{"variable": "T"}, "f32"]}],
//     "inputs": [{"name": "x", "element": E, "shape": ["*B", S], "optional": false, "list": false, "written": false}, ...],
//     ("below": "V" where an input's whole numbers count within a dimension)
//     "attributes": [{"name": "eps", "type": "float", "default": 1e-06, "at_least": 0.0}, {"name": "reduction", "type": "enum",
//                     "values": ["mean", "sum"], "default": "mean"}, ...],                 no "default": required
//     "results": [{"name": "y", "kind": "output", "element": E, "shape": [...], "fold": null, "present_with": null}, ...],
//     "gradient": {"targets": ["dx", "dweight"], "op": "rms_norm_backward", "arguments": ["dy", "x", "weight", "eps"]} or null}]}
//
// E: "f32" | {"variable": "T"} | {"accumulator": "T"};  S: 7 | "N" | ["mul", S, S] with add sub mul div min max.
// "backward_of": the op whose gradient this one is.
#pragma once
#include <string>

namespace kw {
std::string manifest();
}
