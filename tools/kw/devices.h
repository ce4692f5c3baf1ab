// The devices of `kw check` and `kw bench`, over the runtime.
#pragma once
#include <memory>

#include "testing/device.h"

namespace kw::tool {

// "cpu", "emulate" or "cuda". Throws Usage for another name, Error when the device is not there.
std::unique_ptr<test::Device> open_device(const std::string& name);

}  // namespace kw::tool
