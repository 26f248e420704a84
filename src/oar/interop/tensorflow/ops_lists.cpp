// Lists of tensors: what loops read from and write to. How long they are, and where they are read, is known.
#include "oar/interop/tensorflow/call.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/gen/all.h"

namespace oar::tensorflow {
namespace {

constexpr int64_t kMostEntries = 1 << 20;

Item list_of(Items entries) {
  Item item;
  item.known = true;
  item.list = std::make_shared<const Items>(std::move(entries));
  return item;
}
const Items& entries_of(const Call& c, size_t i = 0) {
  if (!c.item(i).list) c.refuse("its input is no list");
  return *c.item(i).list;
}
size_t place_in(const Call& c, size_t count) {
  if (!c.known(1)) c.need_steps("what the model computes decides where it reads a list");
  const int64_t place = c.integer(1);
  if (place < 0 || place >= static_cast<int64_t>(count))
    c.refuse(format("it reads the entry {} of {}", place, count));
  return static_cast<size_t>(place);
}

Items reserved(const Call& c) {
  const int64_t count = c.integer(1);
  if (count < 0 || count > kMostEntries) c.refuse(format("it has {} entries", count));
  return {list_of(Items(static_cast<size_t>(count)))};
}
Items empty_list(const Call&) { return {list_of({})}; }

Items list_of_rows(const Call& c) {
  if (c.tensor(0).rank() < 1 || c.tensor(0).dim(0).value() > kMostEntries)
    c.refuse("its input has no rows, or too many");
  if (c.tensor(0).dim(0).value() == 0) return {list_of({})};
  return {list_of(c.around.compute(c.node, c.known(0), [&] {
    const std::vector<Tensor> rows = unstack(c.tensor(0), 0);
    return Items(rows.begin(), rows.end());
  }))};
}

// An entry that was never written is of zeros.
Item entry_of(const Call& c, const Item& entry, size_t shape) {
  if (entry.tensor.defined()) return entry;
  const std::vector<int64_t> sizes = c.integers(shape);
  const DType dtype = c.dtype("element_dtype");
  if (elements_of(sizes, "an entry of the list of " + c.node.str()) > (1 << 28))
    c.refuse("it has too many elements");
  return c.around.compute(c.node, true, [&] { return Items{zeros(dims_of(c, sizes), dtype)}; })[0];
}
Items read_entry(const Call& c) {
  const Items& entries = entries_of(c);
  return {entry_of(c, entries[place_in(c, entries.size())], 2)};
}
Items with_entry(const Call& c) {
  Items entries = entries_of(c);
  entries[place_in(c, entries.size())] = c.item(2);
  return {list_of(std::move(entries))};
}
Items with_last(const Call& c) {
  Items entries = entries_of(c);
  if (static_cast<int64_t>(entries.size()) >= kMostEntries) c.refuse("its list is too long");
  entries.push_back(c.item(1));
  return {list_of(std::move(entries))};
}
Items without_last(const Call& c) {
  Items entries = entries_of(c);
  if (entries.empty()) c.refuse("its list is empty");
  const Item last = entry_of(c, entries.back(), 1);
  entries.pop_back();
  return {list_of(std::move(entries)), last};
}

// The entries as rows of a tensor, or joined along the first axis.
Items tensor_of(const Call& c, const Items& chosen, bool joins) {
  Items entries;
  bool known = true;
  for (const Item& entry : chosen) {
    entries.push_back(entry_of(c, entry, 1));
    known &= entries.back().known;
  }
  if (entries.empty()) c.refuse("its list is empty");
  return c.around.compute(c.node, known, [&] {
    std::vector<Tensor> rows;
    for (const Item& entry : entries) rows.push_back(entry.tensor);
    return Items{joins ? concat(rows, 0) : stack(rows, 0)};
  });
}
Items stacked(const Call& c) { return tensor_of(c, entries_of(c), false); }
Items joined(const Call& c) { return tensor_of(c, entries_of(c), true); }
Items chosen(const Call& c) {
  const Items& entries = entries_of(c);
  Items some;
  for (const int64_t place : c.integers(1)) {
    if (place < 0 || static_cast<size_t>(place) >= entries.size())
      c.refuse("it reads an entry that is not there");
    some.push_back(entries[static_cast<size_t>(place)]);
  }
  Items rows;
  bool known = true;
  for (const Item& entry : some) {
    rows.push_back(entry_of(c, entry, 2));
    known &= rows.back().known;
  }
  if (rows.empty()) c.refuse("it reads no entries");
  return c.around.compute(c.node, known, [&] {
    std::vector<Tensor> tensors;
    for (const Item& row : rows) tensors.push_back(row.tensor);
    return Items{stack(tensors, 0)};
  });
}
Items length_of(const Call& c) {
  Item item(Tensor::scalar(static_cast<int64_t>(entries_of(c).size()), DType::Int32));
  item.known = true;
  return {item};
}

// ---- arrays of old graphs ----------------------------------------------------------------------
//
// A list goes with the flow, by which old graphs order what is done to an array; its handle says nothing.

Items array_made(const Call& c) {
  const int64_t count = c.integer(0);
  if (count < 0 || count > kMostEntries) c.refuse(format("it has {} entries", count));
  return {list_of({}), list_of(Items(static_cast<size_t>(count)))};
}

const Item& array_entry(const Call& c, const Items& entries, int64_t place) {
  if (place < 0 || static_cast<size_t>(place) >= entries.size() ||
      !entries[static_cast<size_t>(place)].tensor.defined())
    c.refuse(format("it reads the entry {}, which was never written", place));
  return entries[static_cast<size_t>(place)];
}

int64_t array_place(const Call& c) {
  if (!c.known(1)) c.need_steps("what the model computes decides where it reads an array");
  return c.integer(1);
}

Items array_written(const Call& c) {
  Items entries = entries_of(c, 3);
  const int64_t place = array_place(c);
  if (place < 0 || place >= kMostEntries) c.refuse(format("it writes the entry {}", place));
  if (static_cast<size_t>(place) >= entries.size()) entries.resize(static_cast<size_t>(place) + 1);
  entries[static_cast<size_t>(place)] = c.item(2);
  return {list_of(std::move(entries))};
}
Items array_read(const Call& c) { return {array_entry(c, entries_of(c, 2), array_place(c))}; }

Items array_rows(const Call& c, const Items& rows, bool joins) {
  if (rows.empty()) c.refuse("it reads no entries");
  bool known = true;
  for (const Item& row : rows) known &= row.known;
  return c.around.compute(c.node, known, [&] {
    std::vector<Tensor> tensors;
    for (const Item& row : rows) tensors.push_back(row.tensor);
    return Items{joins ? concat(tensors, 0) : stack(tensors, 0)};
  });
}
Items array_gathered(const Call& c) {
  if (!c.known(1)) c.need_steps("what the model computes decides what it reads of an array");
  Items rows;
  for (const int64_t place : c.integers(1)) rows.push_back(array_entry(c, entries_of(c, 2), place));
  return array_rows(c, rows, false);
}
Items array_joined(const Call& c) { return array_rows(c, entries_of(c, 1), true); }

Items array_scattered(const Call& c) {
  Items entries = entries_of(c, 3);
  const std::vector<int64_t> places = c.integers(1);
  if (c.tensor(2).rank() < 1 || c.tensor(2).dim(0).value() != static_cast<int64_t>(places.size()))
    c.refuse("its rows do not fit its places");
  if (places.empty()) return {list_of(std::move(entries))};
  const Items rows = c.around.compute(c.node, c.known(2), [&] {
    const std::vector<Tensor> parts = unstack(c.tensor(2), 0);
    return Items(parts.begin(), parts.end());
  });
  for (size_t i = 0; i < places.size(); ++i) {
    if (places[i] < 0 || places[i] >= kMostEntries)
      c.refuse(format("it writes the entry {}", places[i]));
    const auto at = static_cast<size_t>(places[i]);
    if (at >= entries.size()) entries.resize(at + 1);
    entries[at] = rows[i];
  }
  return {list_of(std::move(entries))};
}
Items array_length(const Call& c) {
  Item item(Tensor::scalar(static_cast<int64_t>(entries_of(c, 1).size()), DType::Int32));
  item.known = true;
  return {item};
}
Items array_closed(const Call&) { return {}; }

constexpr Converter kConverters[] = {
    {"TensorArrayV3", array_made, Converter::Leads, "handle flow"},
    {"TensorArrayWriteV3", array_written, Converter::Leads},
    {"TensorArrayReadV3", array_read, Converter::Leads},
    {"TensorArrayGatherV3", array_gathered, Converter::Leads},
    {"TensorArrayScatterV3", array_scattered, Converter::Leads},
    {"TensorArrayConcatV3", array_joined, Converter::Leads, "value lengths"},
    {"TensorArraySizeV3", array_length, Converter::Leads},
    {"TensorArrayCloseV3", array_closed, Converter::Notes},
    {"TensorListReserve", reserved, Converter::Leads},
    {"EmptyTensorList", empty_list, Converter::Leads},
    {"TensorListFromTensor", list_of_rows, Converter::Leads},
    {"TensorListGetItem", read_entry, Converter::Leads},
    {"TensorListSetItem", with_entry, Converter::Leads},
    {"TensorListPushBack", with_last, Converter::Leads},
    {"TensorListPopBack", without_last, Converter::Leads, "output_handle tensor"},
    {"TensorListStack", stacked, Converter::Leads},
    {"TensorListConcat", joined, Converter::Leads, "tensor lengths"},
    {"TensorListConcatV2", joined, Converter::Leads, "tensor lengths"},
    {"TensorListGather", chosen, Converter::Leads},
    {"TensorListLength", length_of, Converter::Leads},
};

}  // namespace

std::span<const Converter> list_converters() { return kConverters; }

}  // namespace oar::tensorflow
