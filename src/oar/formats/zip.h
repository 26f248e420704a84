// Zip archives in memory. A file may be hostile: nothing is read beyond its end, and what is unpacked has the size that the
// file states.
//
//   const ZipFile zip(bytes);
//   if (const ZipFile::Entry* entry = zip.find("data.pkl")) parse(zip.content(*entry));
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "oar/base/api.h"

namespace OAR_API oar {

class ZipFile {
 public:
  struct Entry {
    std::string name;
    uint64_t place = 0, packed = 0, size = 0;  // of its bytes in the file
    bool deflated = false;
    uint32_t sum = 0;
  };

  // The file must outlive this.
  explicit ZipFile(std::string_view file);

  const std::vector<Entry>& entries() const { return entries_; }
  // Null if there is none.
  const Entry* find(std::string_view name) const;
  // Unpacked, its checksum compared.
  std::string content(const Entry& entry) const;

 private:
  std::string_view file_;
  std::vector<Entry> entries_;
  std::map<std::string, size_t, std::less<>> by_name_;
};

bool is_zip(std::string_view file);
// The content of a deflated stream (RFC 1951), which must have this size.
std::string inflate(std::string_view packed, size_t size);

}  // namespace oar
