// Types and contents of arrays in HDF5 files.
#include <algorithm>
#include <cstring>
#include <set>

#include "oar/formats/hdf5_parts.h"
#include "oar/formats/zip.h"
#include "oar/tensor/byte_count.h"

namespace oar {
namespace {

constexpr int64_t kMostRank = 32;
// What deflated bytes grow to at most; no array is larger than this many times the file.
constexpr uint64_t kMostGrowth = 1040;
constexpr int kDeepestTree = 32;

enum Filter : uint8_t { Deflate = 1, Shuffle = 2, Checksum = 3 };

// ---- types -------------------------------------------------------------------------------------

std::string trimmed(std::string_view text, bool padded_with_spaces) {
  text = text.substr(0, text.find('\0'));
  while (padded_with_spaces && text.ends_with(' ')) text.remove_suffix(1);
  return std::string(text);
}

// A text of any length, which is elsewhere: its length, and where.
std::string long_text(Hdf5Reader& r, const Hdf5Bytes& bytes) {
  const uint64_t size = r.number(4), place = r.offset(), wanted = r.number(4);
  if (size == 0) return "";
  const uint64_t head = 8 + static_cast<uint64_t>(bytes.length_size);
  Hdf5Reader start(bytes.at(place, head), bytes);
  if (start.take(4) != "GCOL") damaged_hdf5("a text is not where it should be");
  start.skip(4);
  const uint64_t whole = start.length();
  if (whole < head) damaged_hdf5("a text is not where it should be");
  Hdf5Reader objects(bytes.at(place, whole).substr(head), bytes);
  while (objects.left() >= head) {
    const auto index = static_cast<uint64_t>(objects.word());
    objects.skip(6);
    const uint64_t length = objects.length();
    if (index == 0) break;  // the room that is free
    if (index == wanted) return std::string(objects.take(std::min(size, length)));
    objects.skip(length);
    objects.skip(std::min<uint64_t>((8 - length % 8) % 8, objects.left()));
  }
  damaged_hdf5("a text is not where it should be");
}

}  // namespace

Hdf5Type parse_hdf5_type(std::string_view message, const Hdf5Bytes& bytes) {
  Hdf5Reader r(message, bytes);
  const int kind = r.byte(), bits = r.byte();
  r.skip(2);
  Hdf5Type type;
  type.size = r.number(4);
  switch (kind & 15) {
    case 0:
      type.kind = Hdf5Type::Integer;
      type.is_signed = (bits & 8) != 0;
      type.big_endian = (bits & 1) != 0;
      break;
    case 1:
      type.kind = Hdf5Type::Real;
      type.big_endian = (bits & 1) != 0;
      break;
    case 3:
      type.kind = Hdf5Type::Text;
      type.is_flag = (bits & 15) == 2;  // filled up with spaces
      break;
    case 5:
      type.kind = Hdf5Type::Opaque;
      break;
    case 8:  // FALSE and TRUE, as h5py writes them
      type.kind = type.size == 1 ? Hdf5Type::Integer : Hdf5Type::Other;
      type.is_flag = true;
      break;
    case 9:
      type.kind = (bits & 15) == 1 ? Hdf5Type::LongText : Hdf5Type::Other;
      break;
    default:
      break;
  }
  return type;
}

DType dtype_of(const Hdf5Type& type) {
  if (type.kind == Hdf5Type::Real) {
    if (type.size == 2) return DType::Float16;
    if (type.size == 4) return DType::Float32;
    if (type.size == 8) return DType::Float64;
  }
  if (type.kind == Hdf5Type::Integer) {
    if (type.is_flag) return DType::Bool;
    if (type.size == 1) return type.is_signed ? DType::Int8 : DType::UInt8;
    if (type.size == 2 && type.is_signed) return DType::Int16;
    if (type.size == 4) return type.is_signed ? DType::Int32 : DType::UInt32;
    if (type.size == 8) return type.is_signed ? DType::Int64 : DType::UInt64;
  }
  unread_hdf5("an array of an unusual type");
}

std::vector<int64_t> parse_hdf5_sizes(std::string_view message, const Hdf5Bytes& bytes) {
  Hdf5Reader r(message, bytes);
  const int version = r.byte(), rank = r.byte();
  r.skip(version == 1 ? 6 : 2);
  if ((version != 1 && version != 2) || rank > kMostRank)
    damaged_hdf5("an array has no usual sizes");
  std::vector<int64_t> sizes;
  for (int i = 0; i < rank; ++i) {
    const uint64_t size = r.length();
    if (size > (uint64_t{1} << 62)) damaged_hdf5("an array has no usual sizes");
    sizes.push_back(static_cast<int64_t>(size));
  }
  return sizes;
}

std::vector<std::string> hdf5_texts(std::string_view content, const Hdf5Type& type, int64_t count,
                                    const Hdf5Bytes& bytes) {
  if (count == 0) return {};  // of any type: h5py writes an empty list as numbers
  const bool fixed = type.kind == Hdf5Type::Text;
  if (!fixed && type.kind != Hdf5Type::LongText) unread_hdf5("no text where one is expected");
  const uint64_t width = fixed ? type.size : 8U + static_cast<unsigned>(bytes.offset_size);
  if (count < 0 || width == 0 || static_cast<uint64_t>(count) > content.size() / width)
    damaged_hdf5("an attribute is too short");
  std::vector<std::string> texts;
  uint64_t total = 0;
  Hdf5Reader r(content, bytes);
  for (int64_t i = 0; i < count; ++i) {
    texts.push_back(fixed ? trimmed(r.take(width), type.is_flag) : long_text(r, bytes));
    total += texts.back().size();
    if (total > 16 * bytes.file.size()) damaged_hdf5("texts of it are one text, many times");
  }
  return texts;
}

// ---- contents ----------------------------------------------------------------------------------

namespace {

std::string unshuffled(std::string_view bytes, uint64_t width) {
  if (width < 2) return std::string(bytes);
  const uint64_t count = bytes.size() / width;
  std::string made(bytes);
  for (uint64_t byte = 0; byte < width; ++byte)
    for (uint64_t i = 0; i < count; ++i) made[i * width + byte] = bytes[byte * count + i];
  return made;
}

std::vector<int> parse_filters(std::string_view message, const Hdf5Bytes& bytes) {
  std::vector<int> filters;
  if (message.empty()) return filters;
  Hdf5Reader r(message, bytes);
  const int version = r.byte();
  const int count = r.byte();
  if (version == 1) r.skip(6);
  for (int i = 0; i < count; ++i) {
    const int filter = r.word();
    const bool named = version == 1 || filter >= 256;
    const auto name = static_cast<uint64_t>(named ? r.word() : 0);
    r.skip(2);
    const auto values = static_cast<uint64_t>(r.word());
    r.skip(version == 1 ? (name + 7) / 8 * 8 : name);
    r.skip(4 * values);
    if (version == 1 && values % 2 != 0) r.skip(4);
    if (filter != Deflate && filter != Shuffle && filter != Checksum)
      unread_hdf5(format("an array packed with filter {}", filter));
    filters.push_back(filter);
  }
  return filters;
}

// A chunk as it was before it was packed.
std::string unpacked(std::string_view packed, const std::vector<int>& filters, uint64_t skipped,
                     uint64_t size, uint64_t width) {
  std::string bytes(packed);
  for (size_t i = filters.size(); i-- > 0;) {
    if (i < 32 && ((skipped >> i) & 1) != 0) continue;
    if (filters[i] == Shuffle) bytes = unshuffled(bytes, width);
    if (filters[i] == Checksum) {
      if (bytes.size() < 4) damaged_hdf5("a chunk is too short");
      bytes.resize(bytes.size() - 4);
    }
    if (filters[i] != Deflate) continue;
    // Two bytes come before the deflated ones, a checksum after them.
    if (bytes.size() < 6) damaged_hdf5("a chunk is too short");
    const bool summed = std::find(filters.begin(), filters.begin() + static_cast<ptrdiff_t>(i),
                                  Checksum) != filters.begin() + static_cast<ptrdiff_t>(i);
    bytes = inflate(std::string_view(bytes).substr(2, bytes.size() - 6), size + (summed ? 4 : 0));
  }
  if (bytes.size() != size) damaged_hdf5("a chunk does not have its size");
  return bytes;
}

class Chunks {
 public:
  Chunks(const Hdf5Array& array, std::vector<int64_t> chunk, const Hdf5Bytes& bytes,
         std::string& into)
      : array_(array),
        chunk_(std::move(chunk)),
        bytes_(bytes),
        into_(into),
        filters_(parse_filters(array.filters, bytes)) {
    Count size = static_cast<int64_t>(array.element);
    for (const int64_t c : chunk_) size = size * c;
    if (size.size() == 0 || size.size() / kMostGrowth > bytes.file.size())
      damaged_hdf5("its chunks are larger than it can hold");
    size_ = size.size();
  }

  void read(uint64_t place, int depth = 0) {
    if (depth > kDeepestTree || !seen_.insert(place).second)
      damaged_hdf5("a tree of it has a cycle");
    Hdf5Reader r(bytes_.at(place, bytes_.file.size() - place), bytes_);
    if (r.take(4) != "TREE" || r.byte() != 1) damaged_hdf5("an array has no chunks");
    const int level = r.byte(), count = r.word();
    r.offset();
    r.offset();
    for (int i = 0; i < count; ++i) {
      const uint64_t size = r.number(4), skipped = r.number(4);
      std::vector<int64_t> at;
      for (size_t axis = 0; axis <= chunk_.size(); ++axis)
        at.push_back(static_cast<int64_t>(r.number(8)));
      const uint64_t child = r.offset();
      if (level > 0)
        read(child, depth + 1);
      else
        place_chunk(unpacked(bytes_.at(child, size), filters_, skipped, size_, array_.element), at);
    }
  }

 private:
  // Row after row of what is inside the array.
  void place_chunk(const std::string& content, const std::vector<int64_t>& at) {
    done_ += content.size();
    if (done_ > into_.size() + kMostGrowth * bytes_.file.size())
      damaged_hdf5("it has a chunk many times");
    const size_t rank = chunk_.size();
    for (size_t axis = 0; axis < rank; ++axis)
      if (at[axis] < 0 || at[axis] >= array_.sizes[axis])
        damaged_hdf5("a chunk is outside of its array");
    std::vector<int64_t> index(rank, 0);
    const auto row =
        static_cast<uint64_t>(std::min(chunk_[rank - 1], array_.sizes[rank - 1] - at[rank - 1]));
    for (;;) {
      uint64_t from = 0, to = 0;
      for (size_t axis = 0; axis < rank; ++axis) {
        from = from * static_cast<uint64_t>(chunk_[axis]) + static_cast<uint64_t>(index[axis]);
        to = to * static_cast<uint64_t>(array_.sizes[axis]) +
             static_cast<uint64_t>(at[axis] + index[axis]);
      }
      std::memcpy(into_.data() + to * array_.element, content.data() + from * array_.element,
                  row * array_.element);
      size_t axis = rank - 1;
      while (axis-- > 0) {
        const int64_t inside = std::min(chunk_[axis], array_.sizes[axis] - at[axis]);
        if (++index[axis] < inside) break;
        index[axis] = 0;
      }
      if (axis == ~size_t{0}) return;
    }
  }

  const Hdf5Array& array_;
  const std::vector<int64_t> chunk_;
  const Hdf5Bytes& bytes_;
  std::string& into_;
  const std::vector<int> filters_;
  std::set<uint64_t> seen_;
  uint64_t size_ = 0, done_ = 0;
};

std::string chunked(const Hdf5Array& array, Hdf5Reader& r, uint64_t size, const Hdf5Bytes& bytes) {
  const auto rank = static_cast<size_t>(r.byte());
  if (rank != array.sizes.size() + 1 || rank < 2) damaged_hdf5("chunks do not fit their array");
  const uint64_t tree = r.offset();
  std::vector<int64_t> chunk;
  for (size_t i = 0; i + 1 < rank; ++i) chunk.push_back(static_cast<int64_t>(r.number(4)));
  if (r.number(4) != array.element) damaged_hdf5("chunks do not fit their array");
  if (size / kMostGrowth > bytes.file.size()) damaged_hdf5("an array is larger than it can hold");
  std::string made(size, '\0');
  if (tree != kNoAddress && size > 0) Chunks(array, std::move(chunk), bytes, made).read(tree);
  return made;
}

}  // namespace

std::string hdf5_elements(const Hdf5Array& array, const Hdf5Bytes& bytes) {
  Count count = static_cast<int64_t>(array.element);
  for (const int64_t size : array.sizes) count = count * size;
  Hdf5Reader r(array.layout, bytes);
  const int version = r.byte(), kind = r.byte();
  if (version != 3 && !(version == 4 && kind < 2)) unread_hdf5("arrays in the newest format");
  if (kind == 2) return chunked(array, r, count.size(), bytes);
  if (kind == 0) {
    const std::string_view content = r.take(static_cast<uint64_t>(r.word()));
    if (content.size() < count.size()) damaged_hdf5("an array is too short");
    return std::string(content.substr(0, count.size()));
  }
  if (kind != 1) unread_hdf5("arrays of an unknown layout");
  const uint64_t place = r.offset();
  if (count.size() == 0) return "";
  if (place == kNoAddress) damaged_hdf5("an array has no content");
  return std::string(bytes.at(place, count.size()));
}

}  // namespace oar
