#include <algorithm>
#include <unordered_map>

#include "oar/parameter_server/keys.h"
#include "oar/parameter_server/row_store.h"

namespace oar::parameter_server {
namespace {

constexpr size_t kRowsOfBlock = 1024;

struct Scramble {
  size_t operator()(uint64_t key) const { return scramble(key); }
};

// The rows of a stripe lie in blocks, which never move.
struct Stripe {
  std::unordered_map<uint64_t, uint32_t, Scramble> places;
  std::vector<uint32_t> free;
  std::vector<std::unique_ptr<float[]>> blocks;
  uint32_t used = 0;
};

class MemoryStore final : public RowStore {
 public:
  MemoryStore(uint32_t stripes, size_t row_size) : stripes_(stripes), row_size_(row_size) {}

  void read(uint32_t stripe, std::span<const uint64_t> keys, float* rows,
            std::vector<bool>* found) const override {
    const Stripe& from = stripes_[stripe];
    found->assign(keys.size(), false);
    for (size_t i = 0; i < keys.size(); ++i) {
      const auto place = from.places.find(keys[i]);
      if (place == from.places.end()) continue;
      std::copy_n(row_at(from, place->second), row_size_, rows + i * row_size_);
      (*found)[i] = true;
    }
  }

  void write(uint32_t stripe, std::span<const uint64_t> keys, const float* rows) override {
    Stripe& to = stripes_[stripe];
    for (size_t i = 0; i < keys.size(); ++i) {
      auto place = to.places.find(keys[i]);
      if (place == to.places.end()) place = to.places.emplace(keys[i], new_place(&to)).first;
      std::copy_n(rows + i * row_size_, row_size_, row_at(to, place->second));
    }
  }

  void remove(uint32_t stripe, std::span<const uint64_t> keys) override {
    Stripe& from = stripes_[stripe];
    for (const uint64_t key : keys) {
      const auto place = from.places.find(key);
      if (place == from.places.end()) continue;
      from.free.push_back(place->second);
      from.places.erase(place);
    }
  }

  void visit(FunctionRef<void(uint64_t, const float*)> see) const override {
    for (const Stripe& stripe : stripes_) {
      for (const auto& [key, place] : stripe.places) see(key, row_at(stripe, place));
    }
  }

  uint64_t rows() const override {
    uint64_t count = 0;
    for (const Stripe& stripe : stripes_) count += stripe.places.size();
    return count;
  }

  uint64_t bytes_in_memory() const override {
    constexpr uint64_t kNode = 4 * sizeof(uint64_t);  // of the map, with its bucket
    uint64_t bytes = 0;
    for (const Stripe& stripe : stripes_) {
      bytes += stripe.blocks.size() * kRowsOfBlock * row_size_ * sizeof(float) +
               stripe.places.size() * kNode;
    }
    return bytes;
  }

 private:
  float* row_at(const Stripe& stripe, uint32_t place) const {
    return stripe.blocks[place / kRowsOfBlock].get() + (place % kRowsOfBlock) * row_size_;
  }

  uint32_t new_place(Stripe* stripe) const {
    if (!stripe->free.empty()) {
      const uint32_t place = stripe->free.back();
      stripe->free.pop_back();
      return place;
    }
    if (stripe->used == stripe->blocks.size() * kRowsOfBlock) {
      stripe->blocks.emplace_back(new float[kRowsOfBlock * row_size_]);
    }
    return stripe->used++;
  }

  std::vector<Stripe> stripes_;
  size_t row_size_;
};

}  // namespace

std::unique_ptr<RowStore> make_memory_store(uint32_t stripes, size_t row_size) {
  return std::make_unique<MemoryStore>(stripes, row_size);
}

}  // namespace oar::parameter_server
