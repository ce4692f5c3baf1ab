#!/bin/bash
# usage: sweep.sh PATH_OF_KW [case...]: shares of the copy rate over tiles. Not for main.
KW=${1:-build/kw}; shift
one() { # op, knob variable, knobs, args...
  local op=$1 var=$2 knob=$3; shift 3
  local args=(); for a in "$@"; do args+=(--arg "$a"); done
  env ${var}=$knob $KW bench $op --device cuda --min-time 0.05 "${args[@]}" --json /tmp/sweep.json >/dev/null 2>/tmp/sweep.err || { echo "$op $* $var=$knob: $(head -c 300 /tmp/sweep.err)"; return; }
  python3 - "$op $* $var=$knob" <<'P'
import json,sys
c=json.load(open('/tmp/sweep.json'))['cases'][0]
print(f"{sys.argv[1]:90s} {c['median_us']:8.1f} us {100*c['share_of_copy']:5.1f} %",flush=True)
P
}
ce() { local dt=$1 rows=$2 n=$3; shift 3; one cross_entropy KW_CE_RING - logits=$dt[$rows,$n] target=i64[$rows]; for k in "$@"; do one cross_entropy KW_CE_RING $k logits=$dt[$rows,$n] target=i64[$rows]; done; }
odd() { local dt=$1 rows=$2 n=$3; shift 3; for k in "$@"; do one cross_entropy KW_CE_WINDOW $k logits=$dt[$rows,$n] target=i64[$rows]; done; }
for c in ${@:-a b c d e f g i h}; do case $c in
a) ce bf16 4096 128256 2048,8,2,12 2048,8,1,12 2048,4,2,6 4096,8,2,12 1024,8,3,8;;
b) ce bf16 4096 151936 2048,8,2,10 2048,8,1,12 4096,8,2,10;;
c) ce bf16 2048 256000 4096,16,2,12 4096,16,1,12 4096,8,2,6;;
d) ce f32 2048 128256 4096,16,2,12 4096,8,2,6;;
e) ce f32 1024 256000 4096,16,2,6 4096,16,1,12 4096,8,1,7;;
f) ce f32 4096 32000 2048,8,2,12 1024,4,2,12 1024,2,2,6 1024,8,4,12;;
g) ce bf16 8192 32000 512,4,4,12 512,1,2,6;;
i) odd bf16 8192 50257 512,1 256,1 1024,1; odd bf16 8192 32001 256,1; odd bf16 4096 151643 1024,8;;
h) one cross_entropy_backward X x dloss=f32[] dlogits=bf16[4096,128256]; one cross_entropy_unreduced_backward X x dloss=f32[8192] dlogits=bf16[8192,32000];;
esac; done
