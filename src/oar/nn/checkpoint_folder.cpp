#include "oar/nn/checkpoint_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "oar/base/error.h"
#include "oar/base/file.h"
#include "oar/base/scope_guard.h"
#include "oar/base/string_util.h"
#include "oar/base/version.h"
#include "oar/formats/checksum.h"
#include "oar/formats/json_reader.h"
#include "oar/tensor/byte_count.h"

namespace oar::nn {
namespace {

namespace fs = std::filesystem;

constexpr const char* kList = "checkpoint.json";
constexpr int64_t kFormat = 1;
constexpr const char* kNew = ".new-";
constexpr const char* kOld = ".old-";

// ---- the list, as Python writes it: sorted keys, ", " and ": ", ASCII only ------------------------

void append_ascii(std::string& out, std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto c = static_cast<unsigned char>(text[i]);
    const size_t length = c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
    uint32_t code = length == 1 ? c : c & (0x7fU >> length);
    for (size_t k = 1; k < length && i + k < text.size(); ++k)
      code = code << 6 | (static_cast<unsigned char>(text[i + k]) & 0x3fU);
    i += length;
    static constexpr std::string_view plain = "\"\\\n\r\t\f\b", short_form = "\"\\nrtfb";
    if (const size_t at =
            code < 0x80 ? plain.find(static_cast<char>(code)) : std::string_view::npos;
        at != std::string_view::npos) {
      out += '\\';
      out += short_form[at];
    } else if (code >= 0x20 && code < 0x7f) {
      out += static_cast<char>(code);
    } else if (code < 0x10000) {
      out += format("\\u{:04x}", code);
    } else {
      out += format("\\u{:04x}\\u{:04x}", 0xd800 + ((code - 0x10000) >> 10),
                    0xdc00 + ((code - 0x10000) & 0x3ff));
    }
  }
}

std::string ascii_json(std::string_view text) {
  std::string out = "\"";
  append_ascii(out, text);
  return out + "\"";
}

template <class Map, class Show>
std::string shown(const Map& map, Show show) {
  std::string out = "{";
  for (const auto& [key, value] : map)
    out += format("{}{}: {}", out.size() > 1 ? ", " : "", ascii_json(key), show(value));
  return out + "}";
}

// `sum` is left out of the text that it is computed from.
std::string text_of(const CheckpointList& list, const std::string& sum = {}) {
  const std::string files = shown(list.files, [](const ListedFile& file) {
    return format("{{\"bytes\": {}, \"sha256\": {}, \"tensors\": {}}}", file.bytes,
                  ascii_json(file.sha256),
                  shown(file.tensors, [](uint32_t value) { return std::to_string(value); }));
  });
  std::string text = format("{{\"files\": {}, \"format\": {}, \"oar\": {}, \"serial\": {}, ", files,
                            kFormat, ascii_json(list.version), list.serial);
  if (!sum.empty()) text += format("\"sha256\": {}, ", ascii_json(sum));
  return text + format("\"step\": {}}}", list.step);
}

ListedFile read_listed_file(JsonReader& json) {
  ListedFile file;
  json.object([&](const std::string& key) {
    if (key == "bytes")
      file.bytes = static_cast<uint64_t>(json.unsigned_integer());
    else if (key == "sha256")
      file.sha256 = json.string();
    else if (key == "tensors")
      json.object([&](const std::string& name) {
        file.tensors[name] = static_cast<uint32_t>(json.unsigned_integer());
      });
    else
      json.error("a known key");
  });
  return file;
}

CheckpointList parse_list(std::string_view text) {
  CheckpointList list;
  std::string sum;
  int64_t format_number = 0;
  JsonReader json(text);
  json.object([&](const std::string& key) {
    if (key == "format")
      format_number = json.unsigned_integer();
    else if (key == "step")
      list.step = json.unsigned_integer();
    else if (key == "serial")
      list.serial = json.unsigned_integer();
    else if (key == "oar")
      list.version = json.string();
    else if (key == "sha256")
      sum = json.string();
    else if (key == "files")
      json.object([&](const std::string& name) { list.files[name] = read_listed_file(json); });
    else
      json.error("a known key");
  });
  json.end();
  user_check(format_number == kFormat && sha256(text_of(list)) == sum, ErrorKind::InvalidArgument,
             "its checksum or format is another one.");
  return list;
}

// ---- files ----------------------------------------------------------------------------------------

void sum_tensors(const StateTree& value, const std::string& path,
                 std::map<std::string, uint32_t>& sums) {
  const auto below = [&](const std::string& key) { return path.empty() ? key : path + "." + key; };
  if (value.is_tensor()) {
    const Tensor t = as_written(value.tensor());
    sums[path] =
        crc32({t.data<char>(), static_cast<size_t>(byte_count(t.numel().value(), t.dtype()))});
  } else if (value.is_dict()) {
    for (const auto& [key, item] : value.dict()) sum_tensors(item, below(key), sums);
  } else if (value.is_list()) {
    for (size_t i = 0; i < value.list().size(); ++i)
      sum_tensors(value.list()[i], below(std::to_string(i)), sums);
  }
}

[[noreturn]] void fail_with(const char* what, const std::string& path, int code) {
  fail(ErrorKind::Runtime, "Cannot {} \"{}\": {}.", what, path,
       std::generic_category().message(code));
}

void rename_folder(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) == -1) fail_with("rename", from, errno);
}

void sync_folder(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd == -1) fail_with("open", path, errno);
  const ScopeGuard close_it([&] { ::close(fd); });
  if (::fsync(fd) == -1 && errno != EINVAL && errno != ENOTSUP) fail_with("flush", path, errno);
}

// A new folder with a hidden name.
std::string hidden_folder(const std::string& root, const std::string& start) {
  static std::atomic<unsigned> counter{0};
  while (true) {
    const std::string path = format("{}/{}{}.{}", root, start, ::getpid(), counter.fetch_add(1));
    std::error_code problem;
    if (fs::create_directory(path, problem)) return path;
    if (problem) fail_with("create", path, problem.value());
  }
}

void remove_quietly(const std::string& path) {
  std::error_code ignored;
  fs::remove_all(path, ignored);
}

// Moves a folder to its place. If there is one already, it steps aside first, and a killed process can be finished later.
void put_in_place(const std::string& hidden, const std::string& root, int64_t step) {
  const std::string path = folder_of(root, step);
  if (!fs::exists(fs::symlink_status(path))) return rename_folder(hidden, path);
  const std::string aside =
      hidden_folder(root, format("{}{}-", kOld, fs::path(path).filename().string()));
  rename_folder(path, aside);
  try {
    rename_folder(hidden, path);
  } catch (...) {
    rename_folder(aside, path);
    throw;
  }
  remove_quietly(aside);
}

std::optional<int64_t> step_of(const std::string& name) {
  if (!name.starts_with("step_") || name.size() == 5 || name.size() > 20 ||
      name.find_first_not_of("0123456789", 5) != std::string::npos)
    return std::nullopt;
  return std::stoll(name.substr(5));
}

void check_file(const std::string& path, const std::string& content, const ListedFile& listed) {
  const char* problem = content.size() != listed.bytes     ? "size"
                        : sha256(content) != listed.sha256 ? "checksum"
                                                           : nullptr;
  if (!problem) return;
  std::string where;
  try {
    std::map<std::string, uint32_t> found;
    sum_tensors(parse_pickle(content), "", found);
    for (const auto& [name, sum] : listed.tensors)
      if (where.empty() && (!found.contains(name) || found[name] != sum))
        where = format(", in '{}'", name);
  } catch (const Error&) {
    where.clear();  // too damaged to say
  }
  fail(ErrorKind::InvalidArgument,
       "'{}' is damaged: it has another {} ({} bytes, expected {}){}.\nhint: Restore another step.",
       path, problem, content.size(), listed.bytes, where);
}

}  // namespace

std::string folder_of(const std::string& root, int64_t step) {
  return format("{}/step_{:08d}", root, step);
}

void write_checkpoint(const std::string& root, int64_t step, int64_t serial,
                      const NamedStates& states) {
  const std::string hidden = hidden_folder(root, format("{}{}-", kNew, step));
  // While it is locked, other processes do not take it for one that a killed process left.
  const int lock = ::open(hidden.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const ScopeGuard unlock([&] { ::close(lock); });
  try {
    if (lock == -1 || ::flock(lock, LOCK_EX) == -1) fail_with("lock", hidden, errno);
    CheckpointList list{.step = step, .serial = serial, .version = version(), .files = {}};
    for (const auto& [name, state] : states) {
      const std::string content = to_pickle(state);
      write_file_atomic(format("{}/{}", hidden, name), content);
      ListedFile& listed = list.files[name];
      listed.bytes = content.size();
      listed.sha256 = sha256(content);
      sum_tensors(state, "", listed.tensors);
    }
    write_file_atomic(hidden + "/" + kList, text_of(list, sha256(text_of(list))));
    sync_folder(hidden);
    put_in_place(hidden, root, step);
    sync_folder(root);
  } catch (...) {
    remove_quietly(hidden);
    throw;
  }
}

CheckpointList read_list(const std::string& root, int64_t step) {
  const std::string path = folder_of(root, step) + "/" + kList;
  try {
    return parse_list(read_file(path));
  } catch (const Error& error) {
    user_check(error.kind() != ErrorKind::NotFound, ErrorKind::NotFound,
               "there is no checkpoint {} in '{}': '{}' does not exist.", step, root, path);
    fail(error.kind(), "'{}' is damaged: {}\nhint: Restore another step.", path, error.text());
  }
}

NamedStates read_states(const std::string& root, int64_t step,
                        const std::vector<std::string>& names) {
  const CheckpointList list = read_list(root, step);
  std::vector<std::string> missing, listed;
  for (const auto& [name, file] : list.files) listed.push_back(name);
  for (const std::string& name : names)
    if (!list.files.contains(name)) missing.push_back(name);
  user_check(missing.empty(), ErrorKind::InvalidArgument,
             "checkpoint {} in '{}' has no {}; it has {}.\nhint: Give the manager the objects that "
             "were saved, under the same names.",
             step, root, join(missing, ", "), join(listed, ", "));
  NamedStates states;
  for (const std::string& name : names) {
    const std::string path = folder_of(root, step) + "/" + name;
    const std::string content = read_file(path);
    check_file(path, content, list.files.at(name));
    states.emplace_back(name, parse_pickle(content));
  }
  return states;
}

std::vector<std::pair<int64_t, int64_t>> steps_in(const std::string& root) {
  std::vector<std::pair<int64_t, int64_t>> found;
  std::error_code problem;
  for (const auto& entry : fs::directory_iterator(root, problem)) {
    const std::optional<int64_t> step = step_of(entry.path().filename().string());
    if (!step) continue;
    int64_t serial = kUnknownSerial;
    try {
      serial = read_list(root, *step).serial;
    } catch (const Error&) {
      serial = kUnknownSerial;  // it is not passed over in silence: it comes last
    }
    found.emplace_back(*step, serial);
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
    return std::pair(a.second, a.first) < std::pair(b.second, b.first);
  });
  return found;
}

void remove_checkpoint(const std::string& root, int64_t step) {
  const std::string aside = hidden_folder(root, format("{}gone-", kOld));
  rename_folder(folder_of(root, step), aside);
  remove_quietly(aside);
}

void remove_leftovers(const std::string& root) {
  std::vector<fs::path> hidden;
  std::error_code problem;
  for (const auto& entry : fs::directory_iterator(root, problem)) {
    const std::string name = entry.path().filename().string();
    if ((name.starts_with(kNew) || name.starts_with(kOld)) && entry.is_directory())
      hidden.push_back(entry.path());
  }
  for (const fs::path& path : hidden) {
    const std::string name = path.filename().string();
    const std::string step = name.substr(5, name.find('-', 5) - 5);
    const fs::path place = path.parent_path() / step;
    if (name.starts_with(kOld) && step_of(step) && !fs::exists(fs::symlink_status(place)) &&
        fs::exists(path / kList)) {
      fs::rename(path, place, problem);
      continue;
    }
    const int lock = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (lock == -1) continue;
    const ScopeGuard unlock([&] { ::close(lock); });
    if (::flock(lock, LOCK_EX | LOCK_NB) == 0) remove_quietly(path.string());
  }
}

}  // namespace oar::nn
