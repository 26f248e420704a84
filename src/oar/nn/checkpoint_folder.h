// One checkpoint: a folder of files with a list of them. Not part of the interface. The format is that of oar/checkpoint/_folder.py.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "oar/formats/pickle.h"

namespace oar::nn {

struct ListedFile {
  uint64_t bytes = 0;
  std::string sha256;
  std::map<std::string, uint32_t> tensors;  // checksums by path
};

struct CheckpointList {
  int64_t step = 0;
  int64_t serial = 0;  // how many were written before it
  std::string version;
  std::map<std::string, ListedFile> files;
};

using NamedStates = std::vector<std::pair<std::string, StateTree>>;  // by the names of their files

std::string folder_of(const std::string& root, int64_t step);
// Writes a checkpoint, or nothing.
void write_checkpoint(const std::string& root, int64_t step, int64_t serial,
                      const NamedStates& states);
CheckpointList read_list(const std::string& root, int64_t step);
// What the files hold, after all of them have been checked.
NamedStates read_states(const std::string& root, int64_t step,
                        const std::vector<std::string>& names);
// The steps with their serial numbers, in the order in which they were written. One whose list is damaged comes last.
std::vector<std::pair<int64_t, int64_t>> steps_in(const std::string& root);
void remove_checkpoint(const std::string& root, int64_t step);
// Removes what killed processes left. A checkpoint that was about to be replaced comes back.
void remove_leftovers(const std::string& root);

constexpr int64_t kUnknownSerial = int64_t{1} << 62;

}  // namespace oar::nn
