#include <algorithm>
#include <cctype>

#include "oar/base/error.h"
#include "oar/parameter_server/keys.h"
#include "oar/parameter_server/table.h"

namespace oar::parameter_server {
namespace {

constexpr uint32_t kStripes = 16;
constexpr size_t kRemovedAtOnce = 1 << 16;
constexpr uint64_t kMostWidth = 1 << 16;

// The positions of keys by stripe, and within a stripe by key.
std::vector<std::vector<uint32_t>> by_stripe(std::span<const uint64_t> keys, uint32_t stripes) {
  std::vector<std::vector<uint32_t>> order(stripes);
  for (size_t i = 0; i < keys.size(); ++i) {
    order[stripe_of(keys[i], stripes)].push_back(static_cast<uint32_t>(i));
  }
  for (std::vector<uint32_t>& positions : order) {
    std::stable_sort(positions.begin(), positions.end(),
                     [&](uint32_t a, uint32_t b) { return keys[a] < keys[b]; });
  }
  return order;
}

Header header_of(const float* row) { return {row[0], row[1], row[2], row[3]}; }
void set_header(const Header& header, float* row) {
  row[0] = header.shows;
  row[1] = header.clicks;
  row[2] = header.day;
  row[3] = header.generation;
}

bool is_ratio(float x) { return x >= 0.0F && x <= 1.0F; }

}  // namespace

void check_options(const TableOptions& options) {
  const auto wrong = [&](const char* what, auto value, const char* hint) {
    throw Error(ErrorKind::InvalidArgument,
                format("{} of the table '{}' is {}.", what, options.name, value), hint);
  };
  const auto is_plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '.';
  };
  if (options.name.empty() || options.name.size() > 128 || options.name[0] == '.' ||
      !std::all_of(options.name.begin(), options.name.end(), is_plain)) {
    throw Error(ErrorKind::InvalidArgument,
                format("'{}' cannot be the name of a table.", options.name.substr(0, 128)),
                "Use up to 128 letters, digits, '_', '-' and '.'.");
  }
  const uint64_t most = options.sparse ? kMostWidth : uint64_t{1} << 36;
  if (options.width == 0 || options.width > most) {
    wrong("the width", options.width, "Pass at least 1, and for a sparse table at most 65536.");
  }
  if (options.on_disk && !options.sparse) {
    wrong("on_disk", true, "Only sparse tables can be on disk.");
  }
  if (options.on_disk && options.cache_bytes < 1 << 20) {
    wrong("the cache", options.cache_bytes, "Pass at least 1 MiB.");
  }
  const RuleOptions& rule = options.rule;
  if (!(rule.learning_rate >= 0.0F))
    wrong("the learning rate", rule.learning_rate, "Pass 0 or more.");
  if (!(rule.epsilon > 0.0F)) wrong("epsilon", rule.epsilon, "Pass a number above 0.");
  if (!is_ratio(rule.beta1)) wrong("beta1", rule.beta1, "Pass a number from 0 to 1.");
  if (!is_ratio(rule.beta2)) wrong("beta2", rule.beta2, "Pass a number from 0 to 1.");
  if (!is_ratio(options.score.decay)) wrong("the decay", options.score.decay, "Pass 0 to 1.");
  if (rule.kind > RuleKind::Sum || options.initial.kind > InitialKind::Gaussian ||
      options.entry.kind > EntryKind::Probability) {
    wrong("the rule, initialiser or entry", "unknown", "Use one that this version has.");
  }
  if (options.entry.kind == EntryKind::Probability && !is_ratio(options.entry.threshold)) {
    wrong("the probability", options.entry.threshold, "Pass a number from 0 to 1.");
  }
  if (!(options.entry.threshold >= 0.0F)) {
    wrong("the entry's threshold", options.entry.threshold, "Pass 0 or more.");
  }
}

void Table::visit_changed(See see) const {
  visit([&](bool candidate, uint64_t key, std::span<const float> row) {
    const bool changed =
        !options_.sparse ||
        (!candidate && header_of(row.data()).generation >= static_cast<float>(age_.generation));
    if (changed) see(candidate, key, row);
  });
}

SparseTable::SparseTable(TableOptions options, Part part, const std::string& folder)
    : Table(std::move(options), part),
      width_(options_.width),
      row_size_(kHeaderSize + width_ + state_size(options_.rule, width_)),
      stripes_(kStripes),
      locks_(stripes_) {
  if (options_.on_disk) {
    database_ = open_database(folder, options_.cache_bytes);
    rows_ = database_->store('r', row_size_);
    candidates_ = database_->store('c', kHeaderSize);
  } else {
    rows_ = make_memory_store(stripes_, row_size_);
    candidates_ = make_memory_store(stripes_, kHeaderSize);
  }
}

SparseTable::~SparseTable() = default;

void SparseTable::pull(std::span<const uint64_t> keys, float* values) const {
  const auto order = by_stripe(keys, stripes_);
  std::vector<uint64_t> asked;
  std::vector<float> rows;
  std::vector<bool> found;
  for (uint32_t stripe = 0; stripe < stripes_; ++stripe) {
    const std::vector<uint32_t>& positions = order[stripe];
    if (positions.empty()) continue;
    asked.clear();
    for (const uint32_t i : positions) asked.push_back(keys[i]);
    rows.resize(asked.size() * row_size_);
    {
      const std::shared_lock lock(locks_[stripe]);
      rows_->read(stripe, asked, rows.data(), &found);
    }
    for (size_t i = 0; i < asked.size(); ++i) {
      const std::span<float> to(values + positions[i] * width_, width_);
      if (found[i]) {
        std::copy_n(&rows[i * row_size_ + kHeaderSize], width_, to.begin());
      } else if (options_.entry.kind == EntryKind::Always) {
        begin_values(options_.initial, asked[i], to);
      } else {
        std::fill(to.begin(), to.end(), 0.0F);
      }
    }
  }
}

// What a push brings to one stripe: keys that differ, in order.
struct SparseTable::Batch {
  std::vector<uint64_t> keys;
  std::vector<float> gradients, shows, clicks;
  std::vector<float> rows;
  std::vector<bool> left_out;
};

void SparseTable::push(std::span<const uint64_t> keys, const float* gradients,
                       std::span<const float> shows, std::span<const float> clicks,
                       float learning_rate) {
  const auto order = by_stripe(keys, stripes_);
  Batch batch;
  for (uint32_t stripe = 0; stripe < stripes_; ++stripe) {
    if (order[stripe].empty()) continue;
    batch.keys.clear();
    batch.gradients.clear();
    batch.shows.clear();
    batch.clicks.clear();
    for (const uint32_t i : order[stripe]) {
      if (batch.keys.empty() || batch.keys.back() != keys[i]) {
        batch.keys.push_back(keys[i]);
        batch.gradients.resize(batch.keys.size() * width_, 0.0F);
        batch.shows.push_back(0.0F);
        batch.clicks.push_back(0.0F);
      }
      float* sum = &batch.gradients[(batch.keys.size() - 1) * width_];
      for (size_t j = 0; j < width_; ++j) sum[j] += gradients[i * width_ + j];
      batch.shows.back() += shows.empty() ? 1.0F : shows[i];
      batch.clicks.back() += clicks.empty() ? 0.0F : clicks[i];
    }
    const std::unique_lock lock(locks_[stripe]);
    push_stripe(stripe, &batch, learning_rate);
  }
}

// Keys without a row are counted. Those that do not get one now are left out.
void SparseTable::count_candidates(uint32_t stripe, Batch* batch, const std::vector<bool>& found) {
  std::vector<size_t> positions;
  std::vector<uint64_t> keys, admitted;
  for (size_t i = 0; i < batch->keys.size(); ++i) {
    if (found[i]) continue;
    positions.push_back(i);
    keys.push_back(batch->keys[i]);
  }
  std::vector<float> rows(keys.size() * kHeaderSize, 0.0F);
  std::vector<bool> known;
  candidates_->read(stripe, keys, rows.data(), &known);
  std::vector<uint64_t> waiting;
  std::vector<float> waiting_rows;
  for (size_t i = 0; i < keys.size(); ++i) {
    Header header = known[i] ? header_of(&rows[i * kHeaderSize]) : Header{};
    const size_t at = positions[i];
    count_push(options_.score, age_, batch->shows[at], batch->clicks[at], &header);
    if (is_admitted(options_.entry, options_.initial.seed, keys[i], header)) {
      if (known[i]) admitted.push_back(keys[i]);
      // The row counts this push itself.
      batch->shows[at] = header.shows;
      batch->clicks[at] = header.clicks;
      continue;
    }
    batch->left_out[at] = true;
    waiting.push_back(keys[i]);
    waiting_rows.resize(waiting.size() * kHeaderSize);
    set_header(header, &waiting_rows[(waiting.size() - 1) * kHeaderSize]);
  }
  candidates_->remove(stripe, admitted);
  candidates_->write(stripe, waiting, waiting_rows.data());
}

void SparseTable::push_stripe(uint32_t stripe, Batch* batch, float learning_rate) {
  const size_t count = batch->keys.size();
  batch->rows.resize(count * row_size_);
  batch->left_out.assign(count, false);
  std::vector<bool> found;
  rows_->read(stripe, batch->keys, batch->rows.data(), &found);
  const bool all_known = std::find(found.begin(), found.end(), false) == found.end();
  if (options_.entry.kind != EntryKind::Always && !all_known) {
    count_candidates(stripe, batch, found);
  }
  size_t kept = 0;  // rows that are written are moved together
  for (size_t i = 0; i < count; ++i) {
    if (batch->left_out[i]) continue;
    float* row = &batch->rows[kept * row_size_];
    if (kept != i) std::copy_n(&batch->rows[i * row_size_], row_size_, row);
    const std::span<float> values(row + kHeaderSize, width_);
    float* state = row + kHeaderSize + width_;
    if (!found[i]) {
      set_header({}, row);
      begin_values(options_.initial, batch->keys[i], values);
      begin_state(options_.rule, width_, state);
    }
    Header header = header_of(row);
    count_push(options_.score, age_, batch->shows[i], batch->clicks[i], &header);
    set_header(header, row);
    apply_rule(options_.rule, values, &batch->gradients[i * width_], state, learning_rate);
    batch->keys[kept++] = batch->keys[i];
  }
  rows_->write(stripe, {batch->keys.data(), kept}, batch->rows.data());
}

void SparseTable::visit(See see) const {
  rows_->visit([&](uint64_t key, const float* row) { see(false, key, {row, row_size_}); });
  candidates_->visit([&](uint64_t key, const float* row) { see(true, key, {row, kHeaderSize}); });
}

void SparseTable::insert(bool candidate, uint64_t key, std::span<const float> row) {
  if (server_of(key, part_.servers) != part_.server) return;
  user_check(row.size() == (candidate ? kHeaderSize : row_size_), ErrorKind::InvalidArgument,
             "a row of the table '{}' has {} values, and {} are needed.\nhint: Load a table that "
             "was saved with the same width and rule.",
             options_.name, row.size(), candidate ? kHeaderSize : row_size_);
  RowStore& to = candidate ? *candidates_ : *rows_;
  to.write(stripe_of(key, stripes_), {&key, 1}, row.data());
}

void SparseTable::remove_where(RowStore* store, Stale is_stale) {
  std::vector<uint64_t> keys;
  const auto remove_all = [&] {
    for (const uint64_t key : keys) store->remove(stripe_of(key, stripes_), {&key, 1});
    keys.clear();
  };
  store->visit([&](uint64_t key, const float* row) {
    if (!is_stale(row)) return;
    keys.push_back(key);
    // A database shows what was there when the visit began, so the list can stay short.
    if (database_ != nullptr && keys.size() == kRemovedAtOnce) remove_all();
  });
  remove_all();
}

void SparseTable::clear() {
  for (RowStore* store : {rows_.get(), candidates_.get()}) {
    remove_where(store, [](const float*) { return true; });
  }
}

void SparseTable::shrink() {
  ++age_.day;
  ScoreOptions candidates = options_.score;
  candidates.counts_shows = false;
  remove_where(rows_.get(), [&](const float* row) {
    return is_stale(options_.score, header_of(row), age_.day);
  });
  remove_where(candidates_.get(),
               [&](const float* row) { return is_stale(candidates, header_of(row), age_.day); });
}

TableSize SparseTable::size() const {
  return {true, rows_->rows(), rows_->bytes_in_memory() + candidates_->bytes_in_memory(),
          candidates_->rows()};
}

}  // namespace oar::parameter_server
