#include <algorithm>

#include "oar/base/error.h"
#include "oar/parameter_server/keys.h"
#include "oar/parameter_server/table.h"

namespace oar::parameter_server {

uint64_t chunk_size(uint64_t width, uint64_t chunk) {
  return std::min(kChunk, width - chunk * kChunk);
}

uint32_t server_of_chunk(const std::string& table, uint64_t chunk, uint32_t servers) {
  uint64_t first = 0;
  for (const char c : table) first = scramble(first ^ static_cast<uint8_t>(c));
  return static_cast<uint32_t>((first % servers + chunk) % servers);
}

DenseTable::DenseTable(TableOptions options, Part part) : Table(std::move(options), part) {
  for (uint64_t number = 0; number < chunks_of(options_.width); ++number) {
    if (server_of_chunk(options_.name, number, part_.servers) != part_.server) continue;
    chunks_.push_back(std::make_unique<Chunk>());
    chunks_.back()->number = number;
  }
  clear();
}

void DenseTable::clear() {
  for (const auto& chunk : chunks_) {
    const uint64_t size = chunk_size(options_.width, chunk->number);
    chunk->row.resize(size + state_size(options_.rule, size));
    begin_values(options_.initial, chunk->number, {chunk->row.data(), size});
    begin_state(options_.rule, size, chunk->row.data() + size);
  }
}

const DenseTable::Chunk* DenseTable::find(uint64_t number) const {
  const auto found =
      std::lower_bound(chunks_.begin(), chunks_.end(), number,
                       [](const auto& chunk, uint64_t wanted) { return chunk->number < wanted; });
  return found != chunks_.end() && (*found)->number == number ? found->get() : nullptr;
}

DenseTable::Chunk& DenseTable::at(uint64_t number) { return const_cast<Chunk&>(*find(number)); }

uint64_t DenseTable::values_of(std::span<const uint64_t> chunks) const {
  uint64_t count = 0;
  for (const uint64_t number : chunks) {
    user_check(find(number) != nullptr, ErrorKind::InvalidArgument,
               "chunk {} of the dense table '{}' is not on server {} of {}.\nhint: Give all "
               "processes the same list of servers.",
               number, options_.name, part_.server, part_.servers);
    count += chunk_size(options_.width, number);
  }
  return count;
}

void DenseTable::pull(std::span<const uint64_t> chunks, float* values) const {
  for (const uint64_t number : chunks) {
    const Chunk& chunk = *find(number);
    const std::lock_guard lock(chunk.mutex);
    values = std::copy_n(chunk.row.data(), chunk_size(options_.width, number), values);
  }
}

void DenseTable::set(std::span<const uint64_t> chunks, const float* values) {
  for (const uint64_t number : chunks) {
    Chunk& chunk = at(number);
    const uint64_t size = chunk_size(options_.width, number);
    const std::lock_guard lock(chunk.mutex);
    std::copy_n(values, size, chunk.row.data());
    begin_state(options_.rule, size, chunk.row.data() + size);
    values += size;
  }
}

void DenseTable::push(std::span<const uint64_t> chunks, const float* gradients,
                      float learning_rate) {
  for (const uint64_t number : chunks) {
    Chunk& chunk = at(number);
    const uint64_t size = chunk_size(options_.width, number);
    const std::lock_guard lock(chunk.mutex);
    apply_rule(options_.rule, {chunk.row.data(), size}, gradients, chunk.row.data() + size,
               learning_rate);
    gradients += size;
  }
}

void DenseTable::visit(See see) const {
  for (const auto& chunk : chunks_) see(false, chunk->number, chunk->row);
}

void DenseTable::insert(bool candidate, uint64_t key, std::span<const float> row) {
  const Chunk* chunk = candidate ? nullptr : find(key);
  if (chunk == nullptr) return;
  user_check(row.size() == chunk->row.size(), ErrorKind::InvalidArgument,
             "chunk {} of the table '{}' has {} values, and {} are needed.\nhint: Load a table "
             "that was saved with the same width and rule.",
             key, options_.name, row.size(), chunk->row.size());
  std::copy(row.begin(), row.end(), at(key).row.begin());
}

TableSize DenseTable::size() const {
  TableSize size;
  for (const auto& chunk : chunks_) {
    size.rows += 1;
    size.bytes += chunk->row.size() * sizeof(float);
  }
  return size;
}

}  // namespace oar::parameter_server
