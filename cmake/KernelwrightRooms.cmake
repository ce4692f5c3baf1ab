# kernelwright_add_room(<target> <folder>): builds a room of your own as a shared library that kw_load_library (in Python:
# kernelwright.load_library) adds to the running process. The folder is laid out like any below kw/ops: its name is the room's, and the
# kernels are named as "kw/ops/<room>/<file>.cuh", so the same folder works when it is moved into the Kernelwright tree.
include("${CMAKE_CURRENT_LIST_DIR}/embed.cmake")

function(kernelwright_add_room target folder)
  get_filename_component(folder "${folder}" ABSOLUTE)
  get_filename_component(room "${folder}" NAME)
  file(GLOB cpp CONFIGURE_DEPENDS "${folder}/*.cpp")
  list(FILTER cpp EXCLUDE REGEX "_test\\.cpp$")
  if(NOT cpp)
    message(FATAL_ERROR "kernelwright_add_room: ${folder} has no .cpp file, so it is not a room")
  endif()
  set(generated "${CMAKE_CURRENT_BINARY_DIR}/${target}_room")
  file(GLOB cuh CONFIGURE_DEPENDS RELATIVE "${folder}" "${folder}/*.cuh")
  kw_embed("${generated}/sources.cpp" kw_room_${room}_sources "${folder}" "kw/ops/${room}/" ${cuh})
  file(GENERATE OUTPUT "${generated}/rooms.cpp" CONTENT
"#include \"kw/core/abi.h\"
extern \"C\" const kw_room kw_room_${room};
extern \"C\" __attribute__((visibility(\"default\"))) const kw_room* const* kw_rooms(int32_t* count) {
  static const kw_room* const rooms[] = {&kw_room_${room}};
  *count = 1;
  return rooms;
}
")
  set_source_files_properties("${generated}/rooms.cpp" PROPERTIES GENERATED TRUE)
  file(MAKE_DIRECTORY "${generated}/include/kw/ops")
  file(CREATE_LINK "${folder}" "${generated}/include/kw/ops/${room}" SYMBOLIC)
  add_library(${target} SHARED ${cpp} "${generated}/sources.cpp" "${generated}/rooms.cpp")
  target_link_libraries(${target} PRIVATE Kernelwright::kernelwright)
  target_include_directories(${target} PRIVATE "${generated}/include")
  target_compile_features(${target} PRIVATE cxx_std_20)
  set_target_properties(${target} PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
endfunction()
