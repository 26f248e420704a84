#include "oar/formats/oar_file.h"

#include <algorithm>
#include <cstring>

#include "oar/base/crc32c.h"
#include "oar/base/error.h"

namespace oar {
namespace {

constexpr std::string_view kMagic = "\x89OAR\r\n\x1a\n";
constexpr int kMajor = 1;
constexpr size_t kMaxHeader = size_t{100} << 20;
constexpr size_t kPage = 4096;
constexpr const char* kDamaged = "The file is truncated or damaged; fetch it again.";

struct Preamble {
  char magic[8];
  uint16_t major, minor;
  uint32_t features;  // none so far; a reader refuses those that it does not know
  uint64_t header_size, file_size;
  uint32_t header_crc32c;
  char reserved[24];
  uint32_t crc32c;  // of what precedes it
};
static_assert(sizeof(Preamble) == 64);

struct Shard {
  std::string file;
  int64_t header_crc32c = -1;
};

// One file, of a model or of a shard.
class Container {
 public:
  explicit Container(const std::string& path) : file_(std::make_shared<MappedFile>(path)) {}

  // Adds what the file holds. The shards that the header names are returned.
  std::vector<Shard> read(std::string_view format, bool verify, OarFile& to);
  uint32_t header_crc32c() const { return preamble_.header_crc32c; }

 private:
  std::string_view header();
  std::string text(JsonReader& json, const std::string& what) const;
  void add_tensors(std::vector<TensorEntry>& entries, bool verify, NamedTensors& to) const;

  std::shared_ptr<MappedFile> file_;
  Preamble preamble_{};
  size_t data_at_ = 0;  // offsets count from here
};

void check_sum(std::string_view bytes, int64_t wanted, std::string_view what) {
  const int64_t sum = crc32c(bytes);
  user_check(sum == wanted, ErrorKind::InvalidArgument,
             "{} has the checksum {}, but should have {}.\nhint: {}", what, sum, wanted, kDamaged);
}

std::string_view Container::header() {
  const std::string_view file = file_->content();
  Preamble& p = preamble_;
  user_check(file.starts_with(kMagic) && file.size() >= sizeof(p), ErrorKind::InvalidArgument,
             "it does not begin as an .oar file does.\nhint: Is it one, and complete?");
  std::memcpy(&p, file.data(), sizeof(p));
  user_check(p.major == kMajor && p.features == 0, ErrorKind::Unsupported,
             "it has version {}.{} (features {}); this Oar reads version {}.\nhint: Use the Oar "
             "that wrote it, or a newer one.",
             p.major, p.minor, p.features, kMajor);
  check_sum(file.substr(0, sizeof(p) - sizeof(p.crc32c)), p.crc32c, "the preamble");
  const size_t rest = file.size() - sizeof(p);
  user_check(p.file_size == file.size() && p.header_size <= rest && p.header_size <= kMaxHeader,
             ErrorKind::InvalidArgument,
             "it has {} bytes, but should have {}, {} of them a header (at most {}).\nhint: {}",
             file.size(), p.file_size, p.header_size, kMaxHeader, kDamaged);
  const std::string_view header = file.substr(sizeof(p), p.header_size);
  check_sum(header, p.header_crc32c, "the header");
  data_at_ = (sizeof(p) + p.header_size + kPage - 1) / kPage * kPage;
  data_at_ = std::min(data_at_, file.size());
  return header;
}

// {"data_offsets": [0, 120], "crc32c": 123}
std::string Container::text(JsonReader& json, const std::string& what) const {
  size_t begin = 0, end = 0;
  bool has_place = false;
  int64_t sum = -1;
  json.object([&](const std::string& key) {
    if (key == "data_offsets")
      has_place = read_offsets(json, begin, end);
    else if (key == "crc32c")
      sum = json.unsigned_integer();
    else
      json.skip();
  });
  const std::string_view data = file_->content().substr(data_at_);
  user_check(has_place && begin <= end && end <= data.size(), ErrorKind::InvalidArgument,
             "the program of '{}' is at {} to {} of {} bytes of data.\nhint: {}", what, begin, end,
             data.size(), kDamaged);
  const std::string_view found = data.substr(begin, end - begin);
  check_sum(found, sum, "the program of '" + what + "'");
  return std::string(found);
}

void Container::add_tensors(std::vector<TensorEntry>& entries, bool verify,
                            NamedTensors& to) const {
  check_entries(entries, file_->content().size() - data_at_, /*dense=*/false);
  for (TensorEntry& entry : entries) {
    entry.begin += data_at_;
    entry.end += data_at_;
    if (verify)
      check_sum(file_->content().substr(entry.begin, entry.end - entry.begin), entry.crc32c,
                "tensor '" + entry.name + "'");
    user_check(to.emplace(entry.name, tensor_in(file_, entry)).second, ErrorKind::InvalidArgument,
               "two files have a tensor '{}'.", entry.name);
  }
}

Shard read_shard(JsonReader& json) {
  Shard shard;
  json.object([&](const std::string& key) {
    if (key == "file")
      shard.file = json.string();
    else if (key == "header_crc32c")
      shard.header_crc32c = json.unsigned_integer();
    else
      json.skip();
  });
  // Nothing outside the model's folder is opened.
  user_check(!shard.file.empty() && shard.file[0] != '.' &&
                 shard.file.find_first_of(std::string_view("/\\\0", 3)) == std::string::npos,
             ErrorKind::InvalidArgument, "this is no name of a shard: '{}'.", shard.file);
  return shard;
}

std::vector<Shard> Container::read(std::string_view format, bool verify, OarFile& to) {
  const std::string_view text_of_header = header();
  const bool is_model = to.header.empty();  // a shard has tensors only
  if (is_model) to.header = text_of_header;
  std::string found;
  std::vector<TensorEntry> entries;
  std::vector<Shard> shards;
  JsonReader json(text_of_header);
  json.object([&](const std::string& key) {
    if (key == "format")
      found = json.string();
    else if (key == "tensors")
      json.object(
          [&](const std::string& name) { entries.push_back(read_entry(json, name, true)); });
    else if (is_model && key == "metadata")
      json.object([&](const std::string& name) { to.metadata[name] = json.string(); });
    else if (is_model && key == "methods")
      json.object([&](const std::string& name) {
        OarFile::Method& method = to.methods[name];
        json.object([&](const std::string& part) {
          if (part == "program")
            method.program = text(json, name);
          else if (part == "training")
            method.training = text(json, name);
          else
            json.skip();
        });
      });
    else if (is_model && key == "shards")
      json.array([&] { shards.push_back(read_shard(json)); });
    else
      json.skip();
  });
  json.end();
  user_check(found == format, ErrorKind::InvalidArgument, "it is an '{}', not an '{}'.", found,
             format);
  add_tensors(entries, verify, to.tensors);
  return shards;
}

template <class F>
auto with_path(const std::string& path, F&& body) {
  try {
    return body();
  } catch (const Error& error) {
    throw Error(error.kind(), format("Cannot load \"{}\": {}", path, error.text()), error.hint());
  }
}

}  // namespace

OarFile load_oar(const std::string& path, bool verify) {
  OarFile file;
  const std::vector<Shard> shards =
      with_path(path, [&] { return Container(path).read("oar model", verify, file); });
  const std::string folder = path.substr(0, path.rfind('/') + 1);
  for (const Shard& shard : shards)
    with_path(folder + shard.file, [&] {
      Container part(folder + shard.file);
      part.read("oar shard", verify, file);
      user_check(part.header_crc32c() == shard.header_crc32c, ErrorKind::InvalidArgument,
                 "it is a shard of another model than \"{}\".\nhint: {}", path, kDamaged);
    });
  return file;
}

}  // namespace oar
