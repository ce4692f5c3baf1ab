// No exception leaves a C function: it becomes a status, and a sentence for kw_last_error. For the faces inside the library.
#pragma once
#include <exception>
#include <new>
#include <utility>

#include "faces/c/kernelwright.h"
#include "kw/core/error.h"
#include "kw/core/log.h"

namespace kw {

int keep_error(int32_t status, const char* text) noexcept;  // for kw_last_error of this thread; returns the status

namespace detail {
template <class F>
int guarded(F&& body) noexcept {
  try {
    body();
    return KW_OK;
  } catch (const Error& e) {
    return keep_error(e.status(), e.what());
  } catch (const std::bad_alloc&) {
    return keep_error(KW_ERROR_MEMORY, "there is no memory left on the host");
  } catch (const std::exception& e) {
    return keep_error(KW_ERROR_INTERNAL, e.what());
  } catch (...) {
    return keep_error(KW_ERROR_INTERNAL, "an unknown exception");
  }
}
}  // namespace detail

template <class F>
int guarded(F&& body) noexcept {
  const int status = detail::guarded(std::forward<F>(body));
  deliver_warnings();
  return status;
}

}  // namespace kw
