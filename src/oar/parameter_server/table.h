// The part of a table that one server holds.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <span>
#include <string>
#include <vector>

#include "oar/base/function_ref.h"
#include "oar/parameter_server/accessor.h"
#include "oar/parameter_server/options.h"
#include "oar/parameter_server/row_store.h"

namespace oar::parameter_server {

// Which server of how many.
struct Part {
  uint32_t server = 0;
  uint32_t servers = 1;
};

// An Error if the options of a table make no sense.
void check_options(const TableOptions& options);

// Pulls and pushes may come from several threads. Everything else is called while no other call runs.
class Table {
 public:
  virtual ~Table() = default;

  const TableOptions& options() const { return options_; }
  Age& age() { return age_; }

  // Rows as they are stored. Those of a dense table are its chunks.
  using See = FunctionRef<void(bool candidate, uint64_t key, std::span<const float> row)>;
  virtual void visit(See see) const = 0;
  // Only rows that changed since the last base save.
  void visit_changed(See see) const;
  // A row that `visit` has shown, maybe on another server; one that belongs elsewhere is passed over.
  virtual void insert(bool candidate, uint64_t key, std::span<const float> row) = 0;
  virtual void clear() = 0;
  // Ends a day.
  virtual void shrink() = 0;
  virtual TableSize size() const = 0;
  // Null for a table in memory.
  virtual Database* database() const { return nullptr; }

 protected:
  Table(TableOptions options, Part part) : options_(std::move(options)), part_(part) {}

  TableOptions options_;
  Part part_;
  Age age_;
};

class SparseTable final : public Table {
 public:
  // `folder` is used by tables on disk.
  SparseTable(TableOptions options, Part part, const std::string& folder);
  ~SparseTable() override;

  void pull(std::span<const uint64_t> keys, float* values) const;
  // Gradients of a key that comes more than once are added. Shows and clicks may be empty.
  void push(std::span<const uint64_t> keys, const float* gradients, std::span<const float> shows,
            std::span<const float> clicks, float learning_rate);

  void visit(See see) const override;
  void insert(bool candidate, uint64_t key, std::span<const float> row) override;
  void clear() override;
  void shrink() override;
  TableSize size() const override;
  Database* database() const override { return database_.get(); }

 private:
  struct Batch;
  void push_stripe(uint32_t stripe, Batch* batch, float learning_rate);
  using Stale = FunctionRef<bool(const float* row)>;
  void remove_where(RowStore* store, Stale is_stale);
  void count_candidates(uint32_t stripe, Batch* batch, const std::vector<bool>& found);

  size_t width_, row_size_;
  uint32_t stripes_;
  mutable std::vector<std::shared_mutex> locks_;
  std::unique_ptr<Database> database_;
  std::unique_ptr<RowStore> rows_, candidates_;
};

// A dense table is cut into chunks of this many values. Each is a row, with a state of its own.
constexpr uint64_t kChunk = 1 << 16;
inline uint64_t chunks_of(uint64_t width) { return (width + kChunk - 1) / kChunk; }
uint64_t chunk_size(uint64_t width, uint64_t chunk);
uint32_t server_of_chunk(const std::string& table, uint64_t chunk, uint32_t servers);

class DenseTable final : public Table {
 public:
  DenseTable(TableOptions options, Part part);

  // The number of values of the chunks; an Error if one is not here.
  uint64_t values_of(std::span<const uint64_t> chunks) const;
  // These take `values_of(chunks)` values.
  void pull(std::span<const uint64_t> chunks, float* values) const;
  void set(std::span<const uint64_t> chunks, const float* values);
  void push(std::span<const uint64_t> chunks, const float* gradients, float learning_rate);

  void visit(See see) const override;
  void insert(bool candidate, uint64_t key, std::span<const float> row) override;
  void clear() override;
  void shrink() override { ++age_.day; }
  TableSize size() const override;

 private:
  struct Chunk {
    uint64_t number = 0;
    std::vector<float> row;  // without header
    mutable std::mutex mutex;
  };
  const Chunk* find(uint64_t number) const;
  Chunk& at(uint64_t number);

  std::vector<std::unique_ptr<Chunk>> chunks_;  // by growing number
};

}  // namespace oar::parameter_server
