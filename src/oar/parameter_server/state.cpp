#include "oar/parameter_server/state.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "oar/base/error.h"
#include "oar/parameter_server/keys.h"

namespace oar::parameter_server {
namespace {

template <class Kind>
Kind kind_of(uint32_t number) {
  return static_cast<Kind>(std::min(number, 255U));
}

template <class Values>
bool all_finite(const Values& values) {
  return std::all_of(values.begin(), values.end(), [](float x) { return std::isfinite(x); });
}

template <class Field>
auto view(const Field& field) {
  return std::span(field.data(), static_cast<size_t>(field.size()));
}

void check_numbers(const std::string& table, const google::protobuf::RepeatedField<float>& values,
                   const char* what) {
  user_check(all_finite(values), ErrorKind::InvalidArgument,
             "{} for the table '{}' are not all finite numbers.\nhint: The training diverges, or "
             "its data has NaN.",
             what, table);
}

void check_rate(float rate) {
  user_check(rate >= 0.0F && std::isfinite(rate), ErrorKind::InvalidArgument,
             "the learning rate of a push is {}.\nhint: Pass 0 or more.", rate);
}

void check_sparse(const SparseTable& table, const wire::Sparse& push) {
  const auto count = static_cast<uint64_t>(push.keys_size());
  const std::string& name = table.options().name;
  const uint64_t wanted = count * table.options().width;
  user_check(static_cast<uint64_t>(push.gradients_size()) == wanted, ErrorKind::InvalidArgument,
             "a push of {} keys to the table '{}' of width {} has {} numbers instead of {}.\nhint: "
             "Pass a row of gradients for each key.",
             count, name, table.options().width, push.gradients_size(), wanted);
  for (const auto* counts : {&push.shows(), &push.clicks()}) {
    user_check(counts->empty() || static_cast<uint64_t>(counts->size()) == count,
               ErrorKind::InvalidArgument,
               "a push of {} keys to the table '{}' has {} shows and {} clicks.\nhint: Pass one of "
               "each for a key, or none.",
               count, name, push.shows_size(), push.clicks_size());
  }
  check_numbers(name, push.gradients(), "gradients");
  check_numbers(name, push.shows(), "shows");
  check_numbers(name, push.clicks(), "clicks");
  check_rate(push.learning_rate());
}

void check_dense(const DenseTable& table, const wire::Dense& push) {
  const uint64_t wanted = table.values_of(view(push.chunks()));
  user_check(static_cast<uint64_t>(push.values_size()) == wanted, ErrorKind::InvalidArgument,
             "{} chunks of the dense table '{}' have {} values, but {} came.\nhint: Pass all of "
             "them.",
             push.chunks_size(), table.options().name, wanted, push.values_size());
  check_numbers(table.options().name, push.values(), "values");
  check_rate(push.learning_rate());
}

float rate_or(float rate, const Table& table) {
  return rate > 0.0F ? rate : table.options().rule.learning_rate;
}

// The settings that the form of a row depends on. Of the others, those of the first worker hold.
bool has_same_rows(const TableOptions& options, const wire::Table& other) {
  const TableOptions wanted = from_wire(other);
  return options.sparse == wanted.sparse && options.width == wanted.width &&
         options.rule.kind == wanted.rule.kind && options.entry.kind == wanted.entry.kind &&
         options.score.counts_shows == wanted.score.counts_shows;
}

// Applies a change to a table on disk unless it is there already.
template <class Change>
void apply_once(const Table& table, uint64_t position, Change&& change) {
  Database* database = table.database();
  if (database == nullptr) return change();
  if (position <= database->position()) return;
  database->begin();
  try {
    change();
  } catch (...) {
    database->abandon();
    throw;
  }
  database->commit(position);
}

}  // namespace

wire::Table to_wire(const TableOptions& options) {
  wire::Table table;
  table.set_name(options.name);
  table.set_sparse(options.sparse);
  table.set_width(options.width);
  table.set_on_disk(options.on_disk);
  table.set_cache_bytes(options.cache_bytes);
  table.set_rule(static_cast<uint32_t>(options.rule.kind));
  table.set_learning_rate(options.rule.learning_rate);
  table.set_beta1(options.rule.beta1);
  table.set_beta2(options.rule.beta2);
  table.set_epsilon(options.rule.epsilon);
  table.set_initial_accumulator(options.rule.initial_accumulator);
  table.set_initial(static_cast<uint32_t>(options.initial.kind));
  table.set_initial_value(options.initial.value);
  table.set_initial_scale(options.initial.scale);
  table.set_seed(options.initial.seed);
  table.set_counts_shows(options.score.counts_shows);
  table.set_show_coefficient(options.score.show_coefficient);
  table.set_click_coefficient(options.score.click_coefficient);
  table.set_decay(options.score.decay);
  table.set_least_score(options.score.least_score);
  table.set_most_unseen(options.score.most_unseen);
  table.set_entry(static_cast<uint32_t>(options.entry.kind));
  table.set_entry_threshold(options.entry.threshold);
  return table;
}

TableOptions from_wire(const wire::Table& table) {
  TableOptions options;
  options.name = table.name();
  options.sparse = table.sparse();
  options.width = table.width();
  options.on_disk = table.on_disk();
  options.cache_bytes = table.cache_bytes();
  options.rule = {kind_of<RuleKind>(table.rule()),
                  table.learning_rate(),
                  table.beta1(),
                  table.beta2(),
                  table.epsilon(),
                  table.initial_accumulator()};
  options.initial = {kind_of<InitialKind>(table.initial()), table.initial_value(),
                     table.initial_scale(), table.seed()};
  options.score = {table.counts_shows(), table.show_coefficient(), table.click_coefficient(),
                   table.decay(),        table.least_score(),      table.most_unseen()};
  options.entry = {kind_of<EntryKind>(table.entry()), table.entry_threshold()};
  return options;
}

Table& State::table(const std::string& name) const {
  const auto found = tables_.find(name);
  user_check(found != tables_.end(), ErrorKind::NotFound,
             "there is no table '{}'.\nhint: Create it first.", name.substr(0, 128));
  return *found->second;
}

SparseTable& State::sparse(const std::string& name) const {
  auto* found = dynamic_cast<SparseTable*>(&table(name));
  user_check(found != nullptr, ErrorKind::InvalidArgument,
             "the table '{}' is dense.\nhint: Use the calls for dense tables.", name);
  return *found;
}

DenseTable& State::dense(const std::string& name) const {
  auto* found = dynamic_cast<DenseTable*>(&table(name));
  user_check(found != nullptr, ErrorKind::InvalidArgument,
             "the table '{}' is sparse.\nhint: Use the calls for sparse tables.", name);
  return *found;
}

std::vector<Table*> State::chosen(const std::string& name) const {
  if (!name.empty()) return {&table(name)};
  std::vector<Table*> all;
  for (const auto& [_, table] : tables_) all.push_back(table.get());
  return all;
}

void State::check(const wire::Request& request) const {
  user_check(request.worker() < workers_, ErrorKind::InvalidArgument,
             "there are {} workers, and none has the number {}.\nhint: Start all processes with "
             "the same number of workers.",
             workers_, request.worker());
  switch (request.what_case()) {
    case wire::Request::kCreate: {
      check_options(from_wire(request.create()));
      const auto found = tables_.find(request.create().name());
      user_check(
          found == tables_.end() || has_same_rows(found->second->options(), request.create()),
          ErrorKind::InvalidArgument,
          "the table '{}' is there with another width, rule or entry.\nhint: Give all "
          "workers the same options, or the table another name.",
          request.create().name());
      break;
    }
    case wire::Request::kSetDense:
      check_dense(dense(request.table()), request.set_dense());
      break;
    case wire::Request::kPushDense:
      check_dense(dense(request.table()), request.push_dense());
      break;
    case wire::Request::kPushSparse:
      check_sparse(sparse(request.table()), request.push_sparse());
      break;
    case wire::Request::kShrink:
    case wire::Request::kSave:
      chosen(request.table());
      break;
    default:
      break;
  }
}

bool State::changes_rows_only(const wire::Request& request) {
  const auto what = request.what_case();
  return what == wire::Request::kSetDense || what == wire::Request::kPushDense ||
         what == wire::Request::kPushSparse || what == wire::Request::kArrive;
}

bool State::writes_to_disk(const wire::Request& request) const {
  if (request.what_case() == wire::Request::kArrive) return true;
  return request.what_case() == wire::Request::kPushSparse && !request.push_sparse().later() &&
         table(request.table()).database() != nullptr;
}

void State::apply(const wire::Request& request, uint64_t position) {
  switch (request.what_case()) {
    case wire::Request::kHello:
      greet(request);
      break;
    case wire::Request::kCreate:
      create(from_wire(request.create()));
      break;
    case wire::Request::kSetDense:
      dense(request.table())
          .set(view(request.set_dense().chunks()), request.set_dense().values().data());
      break;
    case wire::Request::kPushDense:
      if (request.push_dense().later()) {
        keep_for_later(request);
      } else {
        push_dense(request.table(), request.push_dense(), 1.0F);
      }
      break;
    case wire::Request::kPushSparse:
      if (request.push_sparse().later()) {
        keep_for_later(request);
      } else {
        push_sparse(request.table(), request.push_sparse(), 1.0F, position);
      }
      break;
    case wire::Request::kArrive: {
      if (request.arrive().apply()) apply_pending(position);
      const std::lock_guard lock(mutex_);
      rounds_[request.arrive().channel()] = request.arrive().round();
      break;
    }
    case wire::Request::kSave:
      for (Table* table : chosen(request.table())) ++table->age().generation;
      break;
    case wire::Request::kShrink:
      for (Table* table : chosen(request.table())) table->shrink();
      break;
    case wire::Request::kStop: {
      const std::lock_guard lock(mutex_);
      stopped_.insert(request.worker());
      break;
    }
    default:
      break;
  }
  if (request.number() == 0) return;
  const std::lock_guard lock(mutex_);
  uint64_t& last = clients_[request.client()];
  last = std::max(last, request.number());
}

void State::create(const TableOptions& options) {
  if (tables_.contains(options.name)) return;
  std::unique_ptr<Table> table;
  if (options.sparse) {
    const auto folder = std::filesystem::path(folder_) / ("table-" + options.name);
    table = std::make_unique<SparseTable>(options, part_, folder.string());
  } else {
    table = std::make_unique<DenseTable>(options, part_);
  }
  tables_[options.name] = std::move(table);
}

void State::push_dense(const std::string& name, const wire::Dense& push, float scale) {
  DenseTable& to = dense(name);
  const float rate = rate_or(push.learning_rate(), to);
  if (scale == 1.0F) return to.push(view(push.chunks()), push.values().data(), rate);
  std::vector<float> scaled(push.values().begin(), push.values().end());
  for (float& x : scaled) x *= scale;
  to.push(view(push.chunks()), scaled.data(), rate);
}

void State::push_sparse(const std::string& name, const wire::Sparse& push, float scale,
                        uint64_t position) {
  SparseTable& to = sparse(name);
  std::vector<float> scaled(push.gradients().begin(), push.gradients().end());
  for (float& x : scaled) x *= scale;
  apply_once(to, position, [&] {
    to.push(view(push.keys()), scaled.data(), view(push.shows()), view(push.clicks()),
            rate_or(push.learning_rate(), to));
  });
}

void State::keep_for_later(const wire::Request& request) {
  const std::lock_guard lock(mutex_);
  pending_.push_back(request);
}

// The mean over the workers, in their order, so that the sums do not depend on who came first.
void State::apply_pending(uint64_t position) {
  std::vector<wire::Request> pending;
  {
    const std::lock_guard lock(mutex_);
    pending.swap(pending_);
  }
  std::stable_sort(pending.begin(), pending.end(),
                   [](const auto& a, const auto& b) { return a.worker() < b.worker(); });
  const float scale = 1.0F / static_cast<float>(workers_);
  std::map<std::string, wire::Sparse> sparse_pushes;
  std::map<std::pair<std::string, uint64_t>, wire::Dense> dense_pushes;  // by table and first chunk
  for (wire::Request& request : pending) {
    if (request.has_push_sparse()) {
      wire::Sparse& sum = sparse_pushes[request.table()];
      const float rate = request.push_sparse().learning_rate();
      if (request.push_sparse().shows().empty()) {
        for (int i = 0; i < request.push_sparse().keys_size(); ++i) {
          request.mutable_push_sparse()->add_shows(1.0F);
        }
      }
      request.mutable_push_sparse()->mutable_clicks()->Resize(request.push_sparse().keys_size(),
                                                              0.0F);
      sum.MergeFrom(request.push_sparse());
      if (rate > 0.0F) sum.set_learning_rate(rate);
      continue;
    }
    const wire::Dense& push = request.push_dense();
    if (push.chunks().empty()) continue;
    wire::Dense& sum = dense_pushes[{request.table(), push.chunks(0)}];
    if (sum.chunks().empty()) {
      sum = push;
      continue;
    }
    const int shared = std::min(sum.values_size(), push.values_size());
    for (int i = 0; i < shared; ++i) sum.set_values(i, sum.values(i) + push.values(i));
  }
  for (const auto& [name, push] : sparse_pushes) push_sparse(name, push, scale, position);
  for (const auto& [place, push] : dense_pushes) push_dense(place.first, push, scale);
}

// A worker that greets begins anew: what it has left behind is forgotten.
void State::greet(const wire::Request& request) {
  const std::lock_guard lock(mutex_);
  stopped_.erase(request.worker());
  std::erase_if(pending_, [&](const wire::Request& r) { return r.worker() == request.worker(); });
}

uint64_t State::last_number(uint64_t client) const {
  const std::lock_guard lock(mutex_);
  const auto found = clients_.find(client);
  return found != clients_.end() ? found->second : 0;
}

uint64_t State::round(const std::string& channel) const {
  const std::lock_guard lock(mutex_);
  const auto found = rounds_.find(channel);
  return found != rounds_.end() ? found->second : 0;
}

std::map<std::string, uint64_t> State::rounds() const {
  const std::lock_guard lock(mutex_);
  return rounds_;
}

size_t State::stopped() const {
  const std::lock_guard lock(mutex_);
  return stopped_.size();
}

void State::forget_stopped() {
  const std::lock_guard lock(mutex_);
  stopped_.clear();
}

}  // namespace oar::parameter_server
