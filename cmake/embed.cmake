# Device code travels inside the library as text.

# Writes a .cpp that holds the text of `files` (relative to `root`) as an array `symbol` of kw_source, ended by a null path. Their path
# inside the library is `prefix` + the relative one: what device code includes.
function(kw_embed output symbol root prefix)
  set(text "#include \"kw/core/abi.h\"\n")
  set(entries "")
  set(depends "")
  set(i 0)
  foreach(file ${ARGN})
    string(APPEND text "asm(\".section .rodata\\n${symbol}_${i}: .incbin \\\"${root}/${file}\\\"\\n.byte 0\\n.previous\");\n")
    string(APPEND text "extern \"C\" const char ${symbol}_${i}[];\n")
    string(APPEND entries "    {\"${prefix}${file}\", ${symbol}_${i}},\n")
    list(APPEND depends "${root}/${file}")
    math(EXPR i "${i} + 1")
  endforeach()
  string(APPEND text "extern \"C\" const kw_source ${symbol}[];\nconst kw_source ${symbol}[] = {\n${entries}    {nullptr, nullptr}};\n")
  file(GENERATE OUTPUT "${output}" CONTENT "${text}")
  set_source_files_properties("${output}" PROPERTIES GENERATED TRUE OBJECT_DEPENDS "${depends}")
endfunction()
