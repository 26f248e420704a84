// The `.oar` format: a model in one file. docs/file-format.md describes it byte by byte.
//
//   preamble, 64 bytes | header (JSON) | zeros up to a page | data: texts of programs, then tensors
//
// A large model has its tensors in further files, the shards, which the header names.
#pragma once

#include <map>
#include <string>

#include "oar/base/api.h"
#include "oar/formats/safetensors.h"

namespace OAR_API oar {

struct OarFile {
  struct Method {
    std::string program;   // a line of JSON and the text of the program
    std::string training;  // the program to train further; empty if there is none
  };
  std::string header;  // the JSON, well-formed and with the right checksum
  std::map<std::string, Method> methods;
  NamedTensors tensors;
  Metadata metadata;
};

// Maps the tensors into memory, as load_safetensors does: they are read when they are used, processes share them, and a write never
// changes the file. Header and programs are checked against their checksums; tensors are if `verify` is set, which reads all of them.
OarFile load_oar(const std::string& path, bool verify = false);

}  // namespace oar
