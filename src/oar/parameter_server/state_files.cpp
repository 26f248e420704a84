// The files of a state: checkpoints and saved tables.
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>

#include "oar/base/error.h"
#include "oar/base/file.h"
#include "oar/parameter_server/records.h"
#include "oar/parameter_server/state.h"

namespace oar::parameter_server {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMostValuesOfRecord = 1 << 20;

class RecordWriter {
 public:
  explicit RecordWriter(const std::string& path) : file_(path) {}

  void write(const wire::Record& record) {
    const std::string content = record.SerializeAsString();
    const std::string head = record_head(content);
    file_.write(head.data(), head.size());
    file_.write(content.data(), content.size());
    ++count_;
  }
  // Without its last record a file is not complete.
  void commit() {
    wire::Record end;
    end.set_end(count_);
    write(end);
    file_.commit();
  }

 private:
  AtomicFile file_;
  uint64_t count_ = 0;
};

void read_records(const std::string& path, FunctionRef<void(wire::Record&)> see) {
  RecordReader reader(path);
  std::string content;
  wire::Record record;
  for (uint64_t count = 0; reader.next(&content) == RecordReader::Found::Record; ++count) {
    if (!record.ParseFromString(content)) break;
    if (record.what_case() == wire::Record::kEnd && record.end() == count) return;
    see(record);
  }
  throw Error(ErrorKind::Runtime, format("the file {} is not complete.", path),
              "Restore it from a copy, or save again.");
}

// Collects rows of equal length and writes them as one record.
class RowWriter {
 public:
  explicit RowWriter(RecordWriter* writer) : writer_(writer) {}

  void add(bool candidate, uint64_t key, std::span<const float> row) {
    const wire::Rows& rows = record_.rows();
    if (rows.candidates() != candidate || row.size() != row_size_ ||
        static_cast<uint64_t>(rows.values_size()) > kMostValuesOfRecord) {
      flush();
    }
    row_size_ = row.size();
    wire::Rows* to = record_.mutable_rows();
    to->set_candidates(candidate);
    to->add_keys(key);
    to->mutable_values()->Add(row.begin(), row.end());
  }
  void flush() {
    if (record_.has_rows() && record_.rows().keys_size() > 0) writer_->write(record_);
    record_.Clear();
  }

 private:
  RecordWriter* writer_;
  wire::Record record_;
  size_t row_size_ = 0;
};

wire::Record head_of(Table& table, Part part) {
  wire::Record record;
  wire::TableState* head = record.mutable_table();
  *head->mutable_table() = to_wire(table.options());
  head->set_day(table.age().day);
  head->set_generation(table.age().generation);
  head->set_server(part.server);
  head->set_servers(part.servers);
  return record;
}

void insert_rows(const wire::Rows& rows, Table* table, const std::string& path) {
  const auto count = static_cast<size_t>(rows.keys_size());
  const auto values = static_cast<size_t>(rows.values_size());
  user_check(table != nullptr && count > 0 && values % count == 0, ErrorKind::Runtime,
             "the file {} has rows that belong to no table.\nhint: Restore it from a copy.", path);
  const size_t row_size = values / count;
  for (size_t i = 0; i < count; ++i) {
    table->insert(rows.candidates(), rows.keys(static_cast<int>(i)),
                  {rows.values().data() + i * row_size, row_size});
  }
}

std::string part_path(const std::string& folder, const std::string& table, SaveMode mode,
                      Part part) {
  const char* kind = mode == SaveMode::Base ? "base" : "delta";
  return (fs::path(folder) / format("{}.{}.{}-of-{}", table, kind, part.server, part.servers))
      .string();
}

// Of the name of a file: the table, and which part of which kind it is.
struct PartName {
  std::string table;
  SaveMode mode = SaveMode::Base;
  Part part;
};

std::optional<PartName> parse_part(const std::string& file) {
  PartName name;
  const size_t dash = file.rfind("-of-");
  const size_t dot = file.rfind('.', dash);
  if (dash == std::string::npos || dot == std::string::npos || dot == 0) return std::nullopt;
  const size_t kind = file.rfind('.', dot - 1);
  if (kind == std::string::npos || kind == 0) return std::nullopt;
  const std::string mode = file.substr(kind + 1, dot - kind - 1);
  if (mode != "base" && mode != "delta") return std::nullopt;
  name.mode = mode == "base" ? SaveMode::Base : SaveMode::Delta;
  name.table = file.substr(0, kind);
  const auto number = [&](size_t begin, size_t end, uint32_t* out) {
    const auto [stop, error] = std::from_chars(file.data() + begin, file.data() + end, *out);
    return error == std::errc{} && stop == file.data() + end;
  };
  if (!number(dot + 1, dash, &name.part.server)) return std::nullopt;
  if (!number(dash + 4, file.size(), &name.part.servers)) return std::nullopt;
  return name;
}

}  // namespace

void State::write_checkpoint(const std::string& path, uint64_t position) const {
  RecordWriter writer(path);
  wire::Record record;
  wire::State* state = record.mutable_state();
  state->set_position(position);
  {
    const std::lock_guard lock(mutex_);
    state->mutable_clients()->insert(clients_.begin(), clients_.end());
    state->mutable_rounds()->insert(rounds_.begin(), rounds_.end());
    for (const uint32_t worker : stopped_) state->add_stopped(worker);
  }
  writer.write(record);
  for (const wire::Request& request : pending_) {
    *record.mutable_pending() = request;
    writer.write(record);
  }
  for (const auto& [_, table] : tables_) {
    writer.write(head_of(*table, part_));
    if (table->database() != nullptr) {
      table->database()->flush();
      continue;
    }
    RowWriter rows(&writer);
    table->visit([&](bool candidate, uint64_t key, std::span<const float> row) {
      rows.add(candidate, key, row);
    });
    rows.flush();
  }
  writer.commit();
}

uint64_t State::read_checkpoint(const std::string& path) {
  uint64_t position = 0;
  Table* table = nullptr;
  read_records(path, [&](wire::Record& record) {
    switch (record.what_case()) {
      case wire::Record::kState:
        position = record.state().position();
        clients_.insert(record.state().clients().begin(), record.state().clients().end());
        rounds_.insert(record.state().rounds().begin(), record.state().rounds().end());
        stopped_.insert(record.state().stopped().begin(), record.state().stopped().end());
        break;
      case wire::Record::kPending:
        pending_.push_back(record.pending());
        break;
      case wire::Record::kTable: {
        const wire::TableState& head = record.table();
        user_check(head.server() == part_.server && head.servers() == part_.servers,
                   ErrorKind::InvalidArgument,
                   "the checkpoint {} is of server {} of {}, and this is server {} of {}.\nhint: "
                   "Start as many servers as before. To change their number, save the tables and "
                   "load them.",
                   path, head.server(), head.servers(), part_.server, part_.servers);
        create(from_wire(head.table()));
        table = tables_.at(head.table().name()).get();
        table->age() = {head.day(), head.generation()};
        break;
      }
      case wire::Record::kRows:
        insert_rows(record.rows(), table, path);
        break;
      default:
        break;
    }
  });
  return position;
}

void State::save(const std::string& name, const std::string& folder, SaveMode mode) const {
  fs::create_directories(folder);
  for (Table* table : chosen(name)) {
    const std::string path = part_path(folder, table->options().name, mode, part_);
    RecordWriter writer(path);
    writer.write(head_of(*table, part_));
    RowWriter rows(&writer);
    const auto add = [&](bool candidate, uint64_t key, std::span<const float> row) {
      rows.add(candidate, key, row);
    };
    if (mode == SaveMode::Base) {
      table->visit(add);
    } else {
      table->visit_changed(add);
    }
    rows.flush();
    writer.commit();
    // An older delta does not belong to the new base.
    if (mode == SaveMode::Base) {
      fs::remove(part_path(folder, table->options().name, SaveMode::Delta, part_));
    }
  }
}

void State::read_part(const std::string& path, bool replace, std::set<std::string>* cleared) {
  Table* table = nullptr;
  read_records(path, [&](wire::Record& record) {
    if (record.has_table()) {
      TableOptions options = from_wire(record.table().table());
      check_options(options);
      create(options);
      table = tables_.at(options.name).get();
      user_check(table->options().sparse == options.sparse, ErrorKind::InvalidArgument,
                 "the table '{}' is dense in one place and sparse in the other: the one in {}, and "
                 "that of the server.\nhint: Load it under another name.",
                 options.name, path);
      if (replace && cleared->insert(options.name).second) table->clear();
      Age& age = table->age();
      age = {std::max(age.day, record.table().day()),
             std::max(age.generation, record.table().generation())};
    } else if (record.has_rows()) {
      insert_rows(record.rows(), table, path);
    }
  });
}

void State::load(const std::string& name, const std::string& folder) {
  user_check(fs::is_directory(folder), ErrorKind::NotFound,
             "there is no folder {} on server {}.\nhint: Servers read a folder of their own "
             "machine, or one that all machines share.",
             folder, part_.server);
  for (const SaveMode mode : {SaveMode::Base, SaveMode::Delta}) {
    std::map<std::string, std::map<uint32_t, std::string>> parts;
    std::map<std::string, uint32_t> counts;
    for (const auto& entry : fs::directory_iterator(folder)) {
      const auto part = parse_part(entry.path().filename().string());
      if (!part || part->mode != mode || (!name.empty() && part->table != name)) continue;
      parts[part->table][part->part.server] = entry.path().string();
      uint32_t& count = counts.emplace(part->table, part->part.servers).first->second;
      user_check(count == part->part.servers, ErrorKind::InvalidArgument,
                 "{} has parts of the table '{}' from {} servers and from {}.\nhint: Keep those of "
                 "one save.",
                 folder, part->table, count, part->part.servers);
    }
    user_check(mode == SaveMode::Delta || !parts.empty(), ErrorKind::NotFound,
               "{} has no saved table{}.\nhint: Pass the folder that was saved into.", folder,
               name.empty() ? "" : " '" + name + "'");
    std::set<std::string> cleared;
    for (const auto& [table, files] : parts) {
      user_check(files.size() == counts[table], ErrorKind::NotFound,
                 "{} has {} of the {} parts of the table '{}'.\nhint: Copy the parts of all "
                 "servers into one folder.",
                 folder, files.size(), counts[table], table);
      for (const auto& [_, path] : files) read_part(path, mode == SaveMode::Base, &cleared);
    }
  }
}

}  // namespace oar::parameter_server
