// Where a test's kernels run: on the GPU, or on the emulator where there is none, under several thread orders and with no finding allowed.
#pragma once
#include <dlfcn.h>

#include <initializer_list>
#include <string_view>
#include <vector>

#include "kw/runtime/device.h"
#include "kw/runtime/device_buffer.h"
#include "testing/array.h"
#include "testing/expect.h"

namespace kw::test {

// Calls body("gpu"), or body(schedule) for each thread order of the emulator. "greedy": one warp runs ahead as far as it can.
template <class F>
void on_device(std::initializer_list<const char*> schedules, F&& body) {
  if (!find_driver() || device_count() == 0) use_emulator();
  if (!driver().emulator) return body(std::string_view("gpu"));
  const auto set = reinterpret_cast<int (*)(const char*, const char*)>(dlsym(driver().handle, "kwemu_set"));
  const auto reports = reinterpret_cast<int (*)()>(dlsym(driver().handle, "kwemu_report_count"));
  KW_EXPECT(set && reports);
  for (const char* schedule : schedules) {
    KW_EXPECT_EQ(set("schedule", schedule), 0);
    body(std::string_view(schedule));
    KW_EXPECT_EQ(reports(), 0);  // warnings too
  }
}

// Calls f with the arrays' views, on the CPU or with copies on the device that come back. A null array's view is absent.
template <class F>
void with_views(bool on_cuda, std::initializer_list<Array*> arrays, F&& f) {
  std::vector<kw_tensor> views;
  std::vector<DeviceBuffer> memory;
  for (Array* a : arrays) {
    if (!on_cuda) {
      views.push_back(a ? a->view(a->bytes().data(), KW_CPU) : kw_tensor{});
      continue;
    }
    memory.emplace_back(0, a ? a->bytes().size() : 0);
    if (a) memory.back().upload(a->bytes().data(), a->bytes().size());
    views.push_back(a ? a->view(memory.back().data(), KW_CUDA) : kw_tensor{});
  }
  f(views);
  if (!on_cuda) return;
  ContextGuard guard(driver(), 0);
  check(driver(), driver().cuCtxSynchronize(), "running the test");
  size_t i = 0;
  for (Array* a : arrays) {
    if (a) memory[i].download(a->bytes().data(), a->bytes().size());
    i++;
  }
}

}  // namespace kw::test
