#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/table.h>
#include <rocksdb/write_batch.h>
#include <rocksdb/write_buffer_manager.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <mutex>

#include "oar/base/error.h"
#include "oar/parameter_server/row_store.h"

namespace oar::parameter_server {
namespace {

constexpr char kPositionKey[] = "position";

void must(const rocksdb::Status& status, const std::string& folder) {
  user_check(status.ok(), ErrorKind::Runtime,
             "the table on disk in {} cannot be used: {}.\nhint: "
             "Check the disk of the server.",
             folder, status.ToString());
}

// A prefix, then the key with its highest byte first.
std::string key_text(char prefix, uint64_t key) {
  std::string text(1 + sizeof key, prefix);
  for (size_t i = 0; i < sizeof key; ++i) text[1 + i] = static_cast<char>(key >> (56 - 8 * i));
  return text;
}

uint64_t key_of(const rocksdb::Slice& text) {
  uint64_t key = 0;
  for (size_t i = 1; i < text.size(); ++i) key = key << 8 | static_cast<uint8_t>(text[i]);
  return key;
}

class RocksDatabase final : public Database {
 public:
  RocksDatabase(std::string folder, uint64_t cache_bytes) : folder_(std::move(folder)) {
    std::filesystem::create_directories(folder_);
    cache_ = rocksdb::NewLRUCache(cache_bytes, -1, true);
    rocksdb::BlockBasedTableOptions tables;
    tables.block_cache = cache_;
    tables.cache_index_and_filter_blocks = true;
    tables.cache_index_and_filter_blocks_with_high_priority = true;
    tables.index_type = rocksdb::BlockBasedTableOptions::kTwoLevelIndexSearch;
    tables.partition_filters = true;
    tables.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
    rocksdb::Options options;
    options.create_if_missing = true;
    options.compression = rocksdb::kNoCompression;
    options.max_open_files = 256;
    options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(tables));
    // Changes that wait in memory are counted as part of the cache.
    options.write_buffer_size = cache_bytes / 8;
    options.write_buffer_manager =
        std::make_shared<rocksdb::WriteBufferManager>(cache_bytes / 3, cache_);
    rocksdb::DB* opened = nullptr;
    must(rocksdb::DB::Open(options, folder_, &opened), folder_);
    db_.reset(opened);
    std::string text;
    const rocksdb::Status status = db_->Get({}, kPositionKey, &text);
    if (status.ok() && text.size() == sizeof position_) {
      std::memcpy(&position_, text.data(), sizeof position_);
    }
  }

  std::unique_ptr<RowStore> store(char prefix, size_t row_size) override;

  void begin() override {
    const std::lock_guard lock(mutex_);
    batch_.Clear();
    collecting_ = true;
  }
  void abandon() override {
    const std::lock_guard lock(mutex_);
    batch_.Clear();
    collecting_ = false;
  }
  // The server has a log of its own, and the order of writes is kept: the log of RocksDB is not needed.
  void commit(uint64_t position) override {
    const std::lock_guard lock(mutex_);
    batch_.Put(kPositionKey, {reinterpret_cast<const char*>(&position), sizeof position});
    apply();
    collecting_ = false;
    position_ = position;
  }
  uint64_t position() const override { return position_; }
  void flush() override { must(db_->Flush({}), folder_); }

  void put(const std::string& key, const rocksdb::Slice& row) {
    const std::lock_guard lock(mutex_);
    batch_.Put(key, row);
    if (!collecting_ && batch_.GetDataSize() > 4 << 20) apply();
  }
  void drop(const std::string& key) {
    const std::lock_guard lock(mutex_);
    batch_.Delete(key);
    if (!collecting_ && batch_.GetDataSize() > 4 << 20) apply();
  }
  void finish() {
    const std::lock_guard lock(mutex_);
    if (!collecting_) apply();
  }

  rocksdb::DB& db() const { return *db_; }
  const std::string& folder() const { return folder_; }
  uint64_t cached() const { return cache_->GetUsage(); }

 private:
  void apply() {
    rocksdb::WriteOptions options;
    options.disableWAL = true;
    must(db_->Write(options, &batch_), folder_);
    batch_.Clear();
  }

  std::string folder_;
  std::shared_ptr<rocksdb::Cache> cache_;
  std::unique_ptr<rocksdb::DB> db_;
  std::mutex mutex_;
  rocksdb::WriteBatch batch_;
  bool collecting_ = false;
  uint64_t position_ = 0;
};

class RocksStore final : public RowStore {
 public:
  RocksStore(RocksDatabase& database, char prefix, size_t row_size)
      : database_(database), prefix_(prefix), row_size_(row_size) {}

  void read(uint32_t /*stripe*/, std::span<const uint64_t> keys, float* rows,
            std::vector<bool>* found) const override {
    found->assign(keys.size(), false);
    std::vector<std::string> texts(keys.size());
    for (size_t i = 0; i < keys.size(); ++i) texts[i] = key_text(prefix_, keys[i]);
    const std::vector<rocksdb::Slice> slices(texts.begin(), texts.end());
    std::vector<rocksdb::PinnableSlice> contents(keys.size());
    std::vector<rocksdb::Status> statuses(keys.size());
    database_.db().MultiGet({}, database_.db().DefaultColumnFamily(), keys.size(), slices.data(),
                            contents.data(), statuses.data());
    for (size_t i = 0; i < keys.size(); ++i) {
      if (statuses[i].IsNotFound()) continue;
      must(statuses[i], database_.folder());
      copy_row(contents[i], rows + i * row_size_);
      (*found)[i] = true;
    }
  }

  void write(uint32_t /*stripe*/, std::span<const uint64_t> keys, const float* rows) override {
    for (size_t i = 0; i < keys.size(); ++i) {
      const auto* row = reinterpret_cast<const char*>(rows + i * row_size_);
      database_.put(key_text(prefix_, keys[i]), {row, row_bytes()});
    }
    database_.finish();
  }

  void remove(uint32_t /*stripe*/, std::span<const uint64_t> keys) override {
    for (const uint64_t key : keys) database_.drop(key_text(prefix_, key));
    database_.finish();
  }

  void visit(FunctionRef<void(uint64_t, const float*)> see) const override {
    rocksdb::ReadOptions options;
    options.fill_cache = false;
    const std::unique_ptr<rocksdb::Iterator> at(database_.db().NewIterator(options));
    std::vector<float> row(row_size_);
    const std::string begin(1, prefix_);
    for (at->Seek(begin); at->Valid() && at->key().starts_with(begin); at->Next()) {
      if (at->key().size() != 1 + sizeof(uint64_t)) continue;  // the position
      copy_row(at->value(), row.data());
      see(key_of(at->key()), row.data());
    }
    must(at->status(), database_.folder());
  }

  uint64_t rows() const override {
    uint64_t count = 0;
    visit([&](uint64_t, const float*) { ++count; });
    return count;
  }
  uint64_t bytes_in_memory() const override { return database_.cached(); }

 private:
  size_t row_bytes() const { return row_size_ * sizeof(float); }
  void copy_row(const rocksdb::Slice& content, float* row) const {
    user_check(content.size() == row_bytes(), ErrorKind::Runtime,
               "the table on disk in {} has a row of {} bytes instead of {}.\nhint: It was written "
               "with other options; remove the folder.",
               database_.folder(), content.size(), row_bytes());
    std::memcpy(row, content.data(), row_bytes());
  }

  RocksDatabase& database_;
  char prefix_;
  size_t row_size_;
};

std::unique_ptr<RowStore> RocksDatabase::store(char prefix, size_t row_size) {
  return std::make_unique<RocksStore>(*this, prefix, row_size);
}

}  // namespace

std::unique_ptr<Database> open_database(const std::string& folder, uint64_t cache_bytes) {
  return std::make_unique<RocksDatabase>(folder, cache_bytes);
}

}  // namespace oar::parameter_server
