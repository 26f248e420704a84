#include "oar/compiler/codegen/llvm/build_id.h"

#include <elf.h>
#include <link.h>

#include <cstring>

#include "oar/base/format.h"
#include "oar/base/version.h"

namespace oar::codegen {
namespace {

struct Search {
  uintptr_t address;
  std::string found;
};

bool holds(const dl_phdr_info& library, uintptr_t address) {
  for (int i = 0; i < library.dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = library.dlpi_phdr[i];
    const uintptr_t begin = library.dlpi_addr + part.p_vaddr;
    if (part.p_type == PT_LOAD && address >= begin && address < begin + part.p_memsz) return true;
  }
  return false;
}

// Notes are records of three sizes, a name and bytes, each padded to 4 bytes.
std::string id_in_notes(const char* at, const char* end) {
  const auto padded = [](size_t n) { return (n + 3) & ~size_t{3}; };
  while (static_cast<size_t>(end - at) >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) note;
    std::memcpy(&note, at, sizeof note);
    const char* const name = at + sizeof note;
    const char* const bytes = name + padded(note.n_namesz);
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && std::memcmp(name, "GNU", 4) == 0) {
      std::string made;
      for (size_t i = 0; i < note.n_descsz; ++i)
        made += format("{:02x}", static_cast<unsigned char>(bytes[i]));
      return made;
    }
    at = bytes + padded(note.n_descsz);
  }
  return {};
}

int look(dl_phdr_info* library, size_t, void* into) {
  auto& search = *static_cast<Search*>(into);
  if (!holds(*library, search.address)) return 0;
  for (int i = 0; i < library->dlpi_phnum && search.found.empty(); ++i) {
    const ElfW(Phdr)& part = library->dlpi_phdr[i];
    if (part.p_type != PT_NOTE) continue;
    const auto* const begin = reinterpret_cast<const char*>(library->dlpi_addr + part.p_vaddr);
    search.found = id_in_notes(begin, begin + part.p_memsz);
  }
  return 1;
}

std::string id_of_library_at(const void* address) {
  Search search{reinterpret_cast<uintptr_t>(address), {}};
  dl_iterate_phdr(look, &search);
  return search.found;
}

}  // namespace

std::string build_ids() {
  const std::string library = id_of_library_at(reinterpret_cast<const void*>(&oar::version)),
                    own = id_of_library_at(reinterpret_cast<const void*>(&build_ids));
  if (library.empty() || own.empty()) return {};
  return format("oar {} {} {}", version(), library, own);
}

}  // namespace oar::codegen
