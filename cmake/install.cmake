# What others get: the public headers, the library, the command line, and find_package(Kernelwright), from an install prefix and from the
# build folder alike. A room's <room>.h is public; everything else of a room is not.
set(CMAKE_INSTALL_LIBDIR lib CACHE PATH "where libraries go; programs look in ../lib, so lib64 needs KW_EMULATOR")
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(TARGETS kernelwright EXPORT KernelwrightTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
foreach(target kwemu kw)
  if(TARGET ${target})
    install(TARGETS ${target} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  endif()
endforeach()

install(FILES kw/core/abi.h kw/core/error.h kw/core/dtype.h kw/core/room.h kw/core/row_tile.h kw/core/rows.h kw/core/sum.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/kw/core)
install(FILES emulator/kwemu.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/emulator)
install(FILES faces/c/kernelwright.h faces/c/typed.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/faces/c)
file(GLOB rooms CONFIGURE_DEPENDS RELATIVE "${CMAKE_SOURCE_DIR}/kw/ops" "${CMAKE_SOURCE_DIR}/kw/ops/*/*.cpp")
list(TRANSFORM rooms REPLACE "/.*" "")
list(REMOVE_DUPLICATES rooms)
install(DIRECTORY kw/device DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/kw FILES_MATCHING PATTERN "*.cuh")  # Params structs of own rooms
foreach(room ${rooms})
  install(FILES kw/ops/${room}/${room}.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/kw/ops/${room} OPTIONAL)
endforeach()

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/Kernelwright)
target_include_directories(kernelwright INTERFACE $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_compile_features(kernelwright INTERFACE cxx_std_20)
configure_file(cmake/KernelwrightConfig.cmake.in "${CMAKE_BINARY_DIR}/KernelwrightConfig.cmake" COPYONLY)
configure_file(cmake/KernelwrightRooms.cmake "${CMAKE_BINARY_DIR}/KernelwrightRooms.cmake" COPYONLY)
configure_file(cmake/embed.cmake "${CMAKE_BINARY_DIR}/embed.cmake" COPYONLY)
write_basic_package_version_file("${CMAKE_BINARY_DIR}/KernelwrightConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
export(EXPORT KernelwrightTargets NAMESPACE Kernelwright:: FILE "${CMAKE_BINARY_DIR}/KernelwrightTargets.cmake")
install(EXPORT KernelwrightTargets NAMESPACE Kernelwright:: DESTINATION ${package})
install(FILES "${CMAKE_BINARY_DIR}/KernelwrightConfig.cmake" "${CMAKE_BINARY_DIR}/KernelwrightConfigVersion.cmake"
        cmake/KernelwrightRooms.cmake cmake/embed.cmake DESTINATION ${package})
