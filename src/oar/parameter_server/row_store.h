// Where rows of equal length are kept by key: in memory or in RocksDB.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "oar/base/function_ref.h"

namespace oar::parameter_server {

// Calls for different stripes may overlap; calls for one stripe may not, unless all of them read.
class RowStore {
 public:
  virtual ~RowStore() = default;
  // Fills `rows` where a key is found, and says which ones are.
  virtual void read(uint32_t stripe, std::span<const uint64_t> keys, float* rows,
                    std::vector<bool>* found) const = 0;
  virtual void write(uint32_t stripe, std::span<const uint64_t> keys, const float* rows) = 0;
  virtual void remove(uint32_t stripe, std::span<const uint64_t> keys) = 0;
  // In any order. Nothing may be written to a store in memory meanwhile; other threads may read.
  virtual void visit(FunctionRef<void(uint64_t key, const float* row)> see) const = 0;
  virtual uint64_t rows() const = 0;  // of a table on disk: reads all of it
  virtual uint64_t bytes_in_memory() const = 0;
};

std::unique_ptr<RowStore> make_memory_store(uint32_t stripes, size_t row_size);

// A database that holds the stores of a table. It remembers the last change that was applied as a whole.
class Database {
 public:
  virtual ~Database() = default;
  virtual std::unique_ptr<RowStore> store(char prefix, size_t row_size) = 0;
  // Between these calls, writes and removals are collected; `commit` applies them at once, with the position of the change. What
  // was written is not read before that.
  virtual void begin() = 0;
  virtual void commit(uint64_t position) = 0;
  virtual void abandon() = 0;
  virtual uint64_t position() const = 0;
  // All of it is on the disk afterwards.
  virtual void flush() = 0;
};

// Memory stays within `cache_bytes`: blocks that are read, and changes that are not on the disk yet.
std::unique_ptr<Database> open_database(const std::string& folder, uint64_t cache_bytes);

}  // namespace oar::parameter_server
