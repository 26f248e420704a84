#include "oar/interop/pytorch/import.h"

#include "oar/base/error.h"
#include "oar/base/file.h"
#include "oar/interop/pytorch/export_file.h"
#include "oar/interop/pytorch/import_parts.h"

namespace oar::pytorch {

void refuse_unknown(const std::map<std::string, int>& unknown) {
  std::vector<std::string> listed;
  for (const auto& [name, count] : unknown)
    listed.push_back(count == 1 ? name : format("{} ({} times)", name, count));
  interop::refuse_unknown(listed, "ops");
}

Model read_model(std::string_view file) {
  user_check(is_zip(file), ErrorKind::InvalidArgument,
             "the file is no archive of torch.export.save: it is no zip archive.");
  const ZipFile zip(file);
  if (is_export_archive(zip)) return model_of_export(zip);
  for (const ZipFile::Entry& entry : zip.entries())
    if (entry.name.ends_with("/constants.pkl"))
      fail(
          ErrorKind::Unsupported,
          "the archive has TorchScript, which Oar does not read.\nhint: Save the module with torch.export.save.");
  fail(
      ErrorKind::Unsupported,
      "the archive has no program.\nhint: Files of torch.save are for oar.load; torch.export.save writes programs.");
}

Model load_model(const std::string& path) { return read_model(read_file(path)); }

}  // namespace oar::pytorch
