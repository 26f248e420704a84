#include "oar/formats/hdf5.h"

#include <cstring>
#include <set>

#include "oar/formats/hdf5_parts.h"
#include "oar/tensor/byte_count.h"

namespace oar {

void damaged_hdf5(std::string_view what) {
  fail(ErrorKind::InvalidArgument, "the HDF5 file is damaged: {}.", what);
}
void unread_hdf5(std::string_view what) {
  fail(ErrorKind::Unsupported,
       "the HDF5 file has {}, which Oar cannot read.\nhint: Write it again with h5py's defaults.",
       what);
}

std::string_view Hdf5Bytes::at(uint64_t place, uint64_t size) const {
  if (place > file.size() || size > file.size() - place) damaged_hdf5("it ends too early");
  return file.substr(place, size);
}

std::string_view Hdf5Reader::take(uint64_t size) {
  if (size > rest_.size()) damaged_hdf5("a part of it ends too early");
  const std::string_view taken = rest_.substr(0, size);
  rest_.remove_prefix(size);
  return taken;
}

uint64_t Hdf5Reader::number(int size) {
  uint64_t value = 0;
  const std::string_view taken = take(static_cast<uint64_t>(size));
  std::memcpy(&value, taken.data(), taken.size());  // all numbers of a file are little endian
  return value;
}

uint64_t Hdf5Reader::offset() {
  const uint64_t value = number(bytes_.offset_size);
  const bool ones =
      bytes_.offset_size < 8 && value == (uint64_t{1} << (8 * bytes_.offset_size)) - 1;
  return ones ? kNoAddress : value;
}

namespace {

constexpr std::string_view kSignature = "\x89HDF\r\n\x1a\n";
constexpr size_t kMostMessages = 1 << 16;
constexpr size_t kMostMembers = 1 << 20;
constexpr int kDeepestTree = 32;

using Messages = std::vector<Hdf5Message>;

// ---- headers of objects ------------------------------------------------------------------------

struct Block {
  uint64_t place, size;
};

void add_message(Messages& messages, std::vector<Block>& blocks, const Hdf5Message& message,
                 const Hdf5Bytes& bytes) {
  if (messages.size() >= kMostMessages) damaged_hdf5("an object has too many messages");
  messages.push_back(message);
  if (message.type != Hdf5Message::Continuation) return;
  Hdf5Reader r(message.content, bytes);
  const uint64_t place = r.offset(), size = r.length();
  blocks.push_back({place, size});
}

Messages old_header(uint64_t place, const Hdf5Bytes& bytes) {
  Hdf5Reader r(bytes.at(place, 16), bytes);
  r.skip(8);  // version, count, references
  std::vector<Block> blocks{{place + 16, r.number(4)}};
  Messages messages;
  for (size_t i = 0; i < blocks.size(); ++i) {
    Hdf5Reader block(bytes.at(blocks[i].place, blocks[i].size), bytes);
    while (block.left() >= 8) {
      const int type = block.word();
      const auto size = static_cast<uint64_t>(block.word());
      const int flags = block.byte();
      block.skip(3);
      add_message(messages, blocks, {type, (flags & 2) != 0, block.take(size)}, bytes);
    }
  }
  return messages;
}

Messages new_header(uint64_t place, const Hdf5Bytes& bytes) {
  Hdf5Reader r(bytes.at(place, bytes.file.size() - place), bytes);
  r.skip(5);  // "OHDR" and the version
  const int flags = r.byte();
  r.skip(((flags & 0x20) != 0 ? 16U : 0U) + ((flags & 0x10) != 0 ? 4U : 0U));
  const uint64_t size = r.number(1 << (flags & 3));
  const uint64_t begin = bytes.file.size() - r.left();
  std::vector<Block> blocks{{begin, size}};
  Messages messages;
  for (size_t i = 0; i < blocks.size(); ++i) {
    Block at = blocks[i];
    if (i > 0) {  // "OCHK", messages, a checksum
      if (at.size < 8 || bytes.at(at.place, 4) != "OCHK")
        damaged_hdf5("a header goes on at the wrong place");
      at = {at.place + 4, at.size - 8};
    }
    Hdf5Reader block(bytes.at(at.place, at.size), bytes);
    const uint64_t head = (flags & 4) != 0 ? 6 : 4;
    while (block.left() >= head) {
      const int type = block.byte();
      const auto length = static_cast<uint64_t>(block.word());
      const int own = block.byte();
      block.skip(head - 4);
      add_message(messages, blocks, {type, (own & 2) != 0, block.take(length)}, bytes);
    }
  }
  return messages;
}

Messages header_at(uint64_t place, const Hdf5Bytes& bytes) {
  const std::string_view start = bytes.at(place, 6);
  if (start.starts_with("OHDR")) {
    if (start[4] != 2) unread_hdf5("headers of an unknown version");
    return new_header(place, bytes);
  }
  if (start[0] != 1) damaged_hdf5("an object has no header");
  return old_header(place, bytes);
}

// ---- groups ------------------------------------------------------------------------------------

using Members = std::map<std::string, uint64_t>;

void add_member(Members& members, std::string_view name, uint64_t place) {
  if (members.size() >= kMostMembers) damaged_hdf5("a group has too many members");
  members.emplace(name, place);
}

// Names of a group of the old kind.
std::string_view heap_of(uint64_t place, const Hdf5Bytes& bytes) {
  Hdf5Reader r(bytes.at(place, 8 + 2U * static_cast<unsigned>(bytes.length_size) +
                                   static_cast<unsigned>(bytes.offset_size)),
               bytes);
  if (r.take(4) != "HEAP") damaged_hdf5("a group has no names");
  r.skip(4);
  const uint64_t size = r.length();
  r.length();
  const uint64_t begin = r.offset();
  return bytes.at(begin, size);
}

void read_symbols(uint64_t place, std::string_view heap, const Hdf5Bytes& bytes, Members& members) {
  Hdf5Reader r(bytes.at(place, bytes.file.size() - place), bytes);
  if (r.take(4) != "SNOD") damaged_hdf5("a group has no members where it says");
  r.skip(2);
  for (int count = r.word(); count > 0; --count) {
    const uint64_t name = r.offset(), header = r.offset();
    r.skip(24);
    if (name >= heap.size()) damaged_hdf5("a member of a group has no name");
    const std::string_view rest = heap.substr(name);
    add_member(members, rest.substr(0, rest.find('\0')), header);
  }
}

// A tree of nodes; `seen` keeps one that points at itself from running forever.
void read_group_tree(uint64_t place, std::string_view heap, const Hdf5Bytes& bytes, int depth,
                     std::set<uint64_t>& seen, Members& members) {
  if (depth > kDeepestTree || !seen.insert(place).second) damaged_hdf5("a tree of it has a cycle");
  if (bytes.at(place, 4) == "SNOD") return read_symbols(place, heap, bytes, members);
  Hdf5Reader r(bytes.at(place, bytes.file.size() - place), bytes);
  if (r.take(4) != "TREE" || r.byte() != 0) damaged_hdf5("a group has no tree");
  r.byte();
  const int count = r.word();
  r.offset();
  r.offset();
  for (int i = 0; i < count; ++i) {
    r.length();
    const uint64_t child = r.offset();
    read_group_tree(child, heap, bytes, depth + 1, seen, members);
  }
}

void read_link(std::string_view content, const Hdf5Bytes& bytes, Members& members) {
  Hdf5Reader r(content, bytes);
  r.byte();
  const int flags = r.byte();
  const int type = (flags & 8) != 0 ? r.byte() : 0;
  if ((flags & 4) != 0) r.skip(8);
  if ((flags & 0x10) != 0) r.skip(1);
  const std::string_view name = r.take(r.number(1 << (flags & 3)));
  if (type == 0) add_member(members, name, r.offset());
}

Members members_in(const Messages& messages, const Hdf5Bytes& bytes) {
  Members members;
  for (const Hdf5Message& m : messages) {
    if (m.type == Hdf5Message::Link) read_link(m.content, bytes, members);
    if (m.type == Hdf5Message::Links) {
      Hdf5Reader r(m.content, bytes);
      r.byte();
      const int flags = r.byte();
      if ((flags & 1) != 0) r.skip(8);
      if (r.offset() != kNoAddress) unread_hdf5("a group with many members in the newest format");
    }
    if (m.type != Hdf5Message::SymbolTable) continue;
    Hdf5Reader r(m.content, bytes);
    const uint64_t tree = r.offset(), heap = r.offset();
    std::set<uint64_t> seen;
    read_group_tree(tree, heap_of(heap, bytes), bytes, 0, seen, members);
  }
  return members;
}

// ---- attributes --------------------------------------------------------------------------------

struct Attribute {
  std::string_view name, type, space, content;
};

Attribute parse_attribute(std::string_view message, const Hdf5Bytes& bytes) {
  Hdf5Reader r(message, bytes);
  const int version = r.byte(), flags = r.byte();
  if (version < 1 || version > 3) damaged_hdf5("an attribute has an unknown version");
  if (version > 1 && (flags & 3) != 0) unread_hdf5("an attribute of a named type");
  const auto name = static_cast<uint64_t>(r.word()), type = static_cast<uint64_t>(r.word()),
             space = static_cast<uint64_t>(r.word());
  if (version == 3) r.skip(1);
  const auto taken = [&](uint64_t size) {
    const std::string_view part = r.take(size);
    if (version == 1) r.skip((8 - size % 8) % 8);
    return part;
  };
  Attribute a;
  a.name = taken(name);
  a.name = a.name.substr(0, a.name.find('\0'));
  a.type = taken(type);
  a.space = taken(space);
  a.content = r.take(r.left());
  return a;
}

int64_t count_of(const std::vector<int64_t>& sizes) {
  Count count = 1;
  for (const int64_t size : sizes) count = count * size;
  return count.value();
}

}  // namespace

// ---- nodes -------------------------------------------------------------------------------------

Hdf5Node::Hdf5Node(std::shared_ptr<const Hdf5Bytes> bytes, uint64_t place)
    : bytes_(std::move(bytes)),
      messages_(std::make_shared<const Messages>(header_at(place, *bytes_))) {}

const std::map<std::string, uint64_t>& Hdf5Node::members() const {
  if (!members_) members_ = std::make_shared<const Members>(members_in(*messages_, *bytes_));
  return *members_;
}

std::optional<std::string_view> Hdf5Node::message(int type) const {
  for (const Hdf5Message& m : *messages_) {
    if (m.type != type) continue;
    if (m.shared) unread_hdf5("an array of a named type");
    return m.content;
  }
  return std::nullopt;
}

std::optional<Hdf5Node> Hdf5Node::find(std::string_view path) const {
  Hdf5Node node = *this;
  while (!path.empty()) {
    const size_t end = path.find('/');
    const std::string_view name = path.substr(0, end);
    path.remove_prefix(end == std::string_view::npos ? path.size() : end + 1);
    if (name.empty()) continue;
    const auto found = node.members().find(std::string(name));
    if (found == node.members().end()) return std::nullopt;
    node = Hdf5Node(bytes_, found->second);
  }
  return node;
}

std::vector<std::string> Hdf5Node::names() const {
  std::vector<std::string> names;
  for (const auto& [name, place] : members()) names.push_back(name);
  return names;
}

bool Hdf5Node::is_array() const { return message(Hdf5Message::Layout).has_value(); }

std::optional<std::vector<std::string>> Hdf5Node::texts(std::string_view attribute) const {
  for (const Hdf5Message& m : *messages_) {
    if (m.type == Hdf5Message::Attributes) {
      Hdf5Reader r(m.content, *bytes_);
      r.byte();
      if ((r.byte() & 1) != 0) r.skip(2);
      if (r.offset() != kNoAddress) unread_hdf5("many attributes in the newest format");
    }
    if (m.type != Hdf5Message::Attribute || m.shared) continue;
    const Attribute a = parse_attribute(m.content, *bytes_);
    if (a.name != attribute) continue;
    const int64_t count = count_of(parse_hdf5_sizes(a.space, *bytes_));
    return hdf5_texts(a.content, parse_hdf5_type(a.type, *bytes_), count, *bytes_);
  }
  return std::nullopt;
}

Tensor Hdf5Node::tensor() const {
  const auto type = message(Hdf5Message::Datatype), space = message(Hdf5Message::Dataspace),
             layout = message(Hdf5Message::Layout);
  if (!type || !space || !layout) damaged_hdf5("an array has no type, sizes or layout");
  const Hdf5Type stored = parse_hdf5_type(*type, *bytes_);
  // Elements of two bytes without a meaning are how h5py keeps bfloat16, which an attribute then names.
  const auto note = stored.kind == Hdf5Type::Opaque ? texts("dtype") : std::nullopt;
  const bool brain = note && stored.size == 2 && *note == std::vector<std::string>{"bfloat16"};
  const DType dtype = brain ? DType::BFloat16 : dtype_of(stored);
  const Hdf5Array array{parse_hdf5_sizes(*space, *bytes_), stored.size, *layout,
                        message(Hdf5Message::Filters).value_or("")};
  std::string elements = hdf5_elements(array, *bytes_);
  if (stored.big_endian)
    for (size_t at = 0; at + stored.size <= elements.size(); at += stored.size)
      for (size_t i = 0; i < stored.size / 2; ++i)
        std::swap(elements[at + i], elements[at + stored.size - 1 - i]);
  Shape shape;
  for (const int64_t size : array.sizes) shape.push_back(size);
  const Tensor made = Tensor::empty(shape, dtype);
  if (!elements.empty()) std::memcpy(made->data, elements.data(), elements.size());
  if (dtype == DType::Bool)
    for (size_t i = 0; i < elements.size(); ++i)
      static_cast<char*>(made->data)[i] = elements[i] != 0 ? 1 : 0;
  return made;
}

// ---- the file ----------------------------------------------------------------------------------

bool is_hdf5(std::string_view file) { return file.starts_with(kSignature); }

Hdf5File::Hdf5File(std::string_view file) {
  user_check(is_hdf5(file), ErrorKind::InvalidArgument, "it is no HDF5 file.");
  auto bytes = std::make_shared<Hdf5Bytes>(Hdf5Bytes{file});
  const std::string_view start = bytes->at(0, 16);
  const int version = start[8];
  const bool old = version == 0 || version == 1;
  if (!old && version != 2 && version != 3) unread_hdf5("a superblock of an unknown version");
  bytes->offset_size = start[old ? 13 : 9];
  bytes->length_size = start[old ? 14 : 10];
  for (const int size : {bytes->offset_size, bytes->length_size})
    if (size != 2 && size != 4 && size != 8) damaged_hdf5("its numbers have no usual width");
  const uint64_t head = old ? (version == 0 ? 24 : 28) : 12;
  Hdf5Reader r(file.substr(std::min<size_t>(head, file.size())), *bytes);
  if (r.offset() != 0) unread_hdf5("a base address");
  r.offset();
  r.offset();
  if (old) {
    r.offset();
    r.offset();  // the name of the root
  }
  root_ = r.offset();
  bytes_ = std::move(bytes);
}

Hdf5Node Hdf5File::root() const { return {bytes_, root_}; }

}  // namespace oar
