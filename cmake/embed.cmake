# Writes a file's bytes as a list of numbers, for `#include`: cmake -DFROM=file -DTO=list -P embed.cmake
file(READ "${FROM}" bytes HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
file(WRITE "${TO}" "${bytes}\n")
