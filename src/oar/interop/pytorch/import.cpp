#include "oar/interop/pytorch/import.h"

#include "oar/base/error.h"
#include "oar/base/file.h"
#include "oar/interop/pytorch/export_file.h"
#include "oar/interop/pytorch/import_parts.h"
#include "oar/interop/pytorch/torchscript/archive.h"

namespace oar::pytorch {

void refuse_unknown(const std::map<std::string, int>& unknown) {
  std::vector<std::string> listed;
  for (const auto& [name, count] : unknown)
    listed.push_back(count == 1 ? name : format("{} ({} times)", name, count));
  interop::refuse_unknown(listed, "ops");
}

ArchiveKind kind_of_archive(const ZipFile& zip) {
  if (is_export_archive(zip)) return ArchiveKind::Export;
  return is_script_archive(zip) ? ArchiveKind::Script : ArchiveKind::Other;
}

Model read_model(std::string_view file) {
  user_check(
      is_zip(file), ErrorKind::InvalidArgument,
      "the file is no archive of torch.export.save or torch.jit.save: it is no zip archive.");
  const ZipFile zip(file);
  const ArchiveKind kind = kind_of_archive(zip);
  if (kind == ArchiveKind::Export) return model_of_export(zip);
  if (kind == ArchiveKind::Script) return model_of_script(zip);
  fail(
      ErrorKind::Unsupported,
      "the archive has no program.\nhint: Files of torch.save are for oar.load; torch.export.save and torch.jit.save write programs.");
}

Model load_model(const std::string& path) { return read_model(read_file(path)); }

}  // namespace oar::pytorch
