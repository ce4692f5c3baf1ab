# A folder below kw/ops is a room; adding or deleting one is the whole registration. For every room: its sources (less tests), and a
# generated file that embeds its device code; for all: the generated registry. Nothing generated is committed.
include(${CMAKE_CURRENT_LIST_DIR}/embed.cmake)

function(kw_collect_rooms out_sources out_registry)
  file(GLOB rooms CONFIGURE_DEPENDS RELATIVE "${CMAKE_SOURCE_DIR}/kw/ops" "${CMAKE_SOURCE_DIR}/kw/ops/*/*.cpp")
  list(TRANSFORM rooms REPLACE "/.*" "")
  list(REMOVE_DUPLICATES rooms)
  list(SORT rooms)
  set(sources "")
  set(generated "")
  set(declare "")
  set(array "")
  foreach(room ${rooms})
    file(GLOB cpp CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/kw/ops/${room}/*.cpp")
    list(FILTER cpp EXCLUDE REGEX "_test\\.cpp$")
    list(APPEND sources ${cpp})
    file(GLOB cuh CONFIGURE_DEPENDS RELATIVE "${CMAKE_SOURCE_DIR}" "${CMAKE_SOURCE_DIR}/kw/ops/${room}/*.cuh")
    kw_embed("${CMAKE_BINARY_DIR}/generated/${room}_sources.cpp" kw_room_${room}_sources "${CMAKE_SOURCE_DIR}" "" ${cuh})
    list(APPEND generated "${CMAKE_BINARY_DIR}/generated/${room}_sources.cpp")
    string(APPEND declare "extern \"C\" const kw_room kw_room_${room};\n")
    string(APPEND array "    &kw_room_${room},\n")
  endforeach()
  file(GLOB device CONFIGURE_DEPENDS RELATIVE "${CMAKE_SOURCE_DIR}" "${CMAKE_SOURCE_DIR}/kw/device/*.cuh")
  kw_embed("${CMAKE_BINARY_DIR}/generated/device_sources.cpp" kw_device_sources "${CMAKE_SOURCE_DIR}" "" ${device})
  file(GENERATE OUTPUT "${CMAKE_BINARY_DIR}/generated/rooms.cpp" CONTENT
"#include \"kw/core/rooms.h\"
${declare}namespace kw {
const kw_room* const built_in_rooms[] = {
${array}    nullptr};
}
")
  set_source_files_properties("${CMAKE_BINARY_DIR}/generated/rooms.cpp" PROPERTIES GENERATED TRUE)
  set(${out_sources} ${sources} PARENT_SCOPE)
  set(${out_registry} ${generated} "${CMAKE_BINARY_DIR}/generated/device_sources.cpp" "${CMAKE_BINARY_DIR}/generated/rooms.cpp"
      PARENT_SCOPE)
endfunction()
