#include "oar/planner/machine.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <limits>
#include <map>

#include "oar/base/error.h"
#include "oar/base/string_util.h"
#include "oar/formats/json_reader.h"

namespace oar::planner {
namespace {

constexpr const char* kCollectives[] = {"all_reduce", "all_gather", "reduce_scatter", "all_to_all",
                                        "send"};

// The time of a measured curve: lines between its points, and from the last two beyond them.
double read_curve(const Curve& curve, double bytes) {
  const auto& points = curve.points;
  if (points.size() == 1) return points[0].seconds * std::max(1.0, bytes / points[0].bytes);
  if (bytes <= points[0].bytes) return points[0].seconds;
  size_t after = 1;
  while (after + 1 < points.size() && points[after].bytes < bytes) ++after;
  const Curve::Point &a = points[after - 1], &b = points[after];
  return std::max(a.seconds + (b.seconds - a.seconds) * (bytes - a.bytes) / (b.bytes - a.bytes),
                  0.0);
}

// On links of one kind.
double flat_time(Collective collective, double bytes, int64_t size, const Link& link) {
  if (size < 2) return 0;
  const double n = static_cast<double>(size), rounds = std::ceil(std::log2(n));
  const double pass = (n - 1) / n * bytes / link.bandwidth;
  switch (collective) {
    case Collective::AllReduce:
      return 2 * rounds * link.latency + 2 * pass;
    case Collective::AllGather:
    case Collective::ReduceScatter:
      return rounds * link.latency + pass;
    case Collective::AllToAll:
      return rounds * link.latency + pass;
    case Collective::Send:
      return link.latency + bytes / link.bandwidth;
  }
  return 0;
}

double checked_number(JsonReader& json, const std::string& key, double least) {
  const double value = json.number().value;
  user_check(std::isfinite(value) && value >= least && (value > 0 || least < 0 || least == 0),
             ErrorKind::InvalidArgument, "\"{}\" is {}, which is no sensible value.", key, value);
  return value;
}

double positive(JsonReader& json, const std::string& key) {
  const double value = json.number().value;
  user_check(std::isfinite(value) && value > 0, ErrorKind::InvalidArgument,
             "\"{}\" is {}.\nhint: It must be a number above 0.", key, value);
  return value;
}

double part(JsonReader& json, const std::string& key) {
  const double value = checked_number(json, key, 0);
  user_check(value <= 1, ErrorKind::InvalidArgument,
             "\"{}\" is {}.\nhint: It is a part, from 0 to 1.", key, value);
  return value;
}

[[noreturn]] void refuse_key(const std::string& key, const std::vector<std::string>& known) {
  const std::string near = nearest_name(key, known);
  fail(ErrorKind::InvalidArgument, "a machine has no \"{}\"{}\nhint: It may have {}.", key,
       near.empty() ? "." : format("; did you mean \"{}\"?", near), join(known, ", "));
}

Link parse_link(JsonReader& json) {
  Link link;
  json.object([&](const std::string& key) {
    if (key == "name")
      link.name = json.string();
    else if (key == "devices")
      link.devices = json.unsigned_integer();
    else if (key == "latency")
      link.latency = checked_number(json, key, 0);
    else if (key == "bandwidth")
      link.bandwidth = positive(json, key);
    else
      refuse_key(key, {"name", "devices", "latency", "bandwidth"});
  });
  user_check(link.devices > 1, ErrorKind::InvalidArgument,
             "the link \"{}\" connects {} devices.\nhint: Give \"devices\", at least 2.", link.name,
             link.devices);
  return link;
}

Curve parse_curve(JsonReader& json) {
  Curve curve;
  json.object([&](const std::string& key) {
    if (key == "collective") {
      const std::string name = json.string();
      const auto* const found = std::find(std::begin(kCollectives), std::end(kCollectives), name);
      user_check(found != std::end(kCollectives), ErrorKind::InvalidArgument,
                 "a curve is of the collective \"{}\".\nhint: It may be one of {}.", name,
                 join(kCollectives, ", "));
      curve.collective = static_cast<Collective>(found - std::begin(kCollectives));
    } else if (key == "devices") {
      curve.devices = json.unsigned_integer();
    } else if (key == "points") {
      json.array([&] {
        std::vector<double> pair;
        json.array([&] { pair.push_back(checked_number(json, "points", 0)); });
        user_check(pair.size() == 2 && pair[0] > 0, ErrorKind::InvalidArgument,
                   "a point of a curve has {} numbers.\nhint: Each is [bytes, seconds].",
                   pair.size());
        curve.points.push_back({pair[0], pair[1]});
      });
    } else {
      refuse_key(key, {"collective", "devices", "points"});
    }
  });
  user_check(curve.devices > 1 && !curve.points.empty(), ErrorKind::InvalidArgument,
             "the curve of {} has {} points on {} devices.\nhint: It needs points, and 2 devices.",
             name_of(curve.collective), curve.points.size(), curve.devices);
  const bool ascending = std::is_sorted(
      curve.points.begin(), curve.points.end(),
      [](const Curve::Point& a, const Curve::Point& b) { return a.bytes <= b.bytes; });
  user_check(ascending, ErrorKind::InvalidArgument,
             "the curve of {} on {} devices is not sorted by bytes.", name_of(curve.collective),
             curve.devices);
  return curve;
}

using Fields = std::map<std::string, std::function<void(JsonReader&, const std::string&)>>;

Fields fields_of(Machine& m) {
  const auto number = [](double& to) {
    return [&to](JsonReader& json, const std::string& key) { to = positive(json, key); };
  };
  const auto share = [](double& to) {
    return [&to](JsonReader& json, const std::string& key) { to = part(json, key); };
  };
  return {
      {"name", [&](JsonReader& json, const std::string&) { m.name = json.string(); }},
      {"flops", number(m.flops)},
      {"scalar_flops", number(m.scalar_flops)},
      {"bandwidth", number(m.bandwidth)},
      {"memory",
       [&](JsonReader& json, const std::string& key) {
         m.memory = json.next() == '"' ? parse_bytes(json.string(), key) : positive(json, key);
       }},
      {"product_efficiency", share(m.product_efficiency)},
      {"memory_efficiency", share(m.memory_efficiency)},
      {"launch",
       [&](JsonReader& json, const std::string& key) { m.launch = checked_number(json, key, 0); }},
      {"overlap", share(m.overlap)},
      {"links",
       [&](JsonReader& json, const std::string&) {
         json.array([&] { m.links.push_back(parse_link(json)); });
       }},
      {"curves",
       [&](JsonReader& json, const std::string&) {
         json.array([&] { m.curves.push_back(parse_curve(json)); });
       }},
  };
}

std::string number_text(double value) { return format("{:.12g}", value); }

std::string at_scale(double value, double step, std::initializer_list<const char*> units) {
  const auto* unit = units.begin();
  while (unit + 1 != units.end() && std::abs(value) >= step) {
    value /= step;
    ++unit;
  }
  return format("{:.3g} {}", value, *unit);
}

}  // namespace

const char* name_of(Collective collective) { return kCollectives[static_cast<size_t>(collective)]; }

double Machine::time_of(const Cost& cost) const {
  const double products = cost.products / (flops * std::max(product_efficiency, 1e-6));
  const double others = std::max(cost.flops - cost.products, 0.0) / scalar_flops;
  const double moved = std::max(cost.bytes, 0.0) / (bandwidth * std::max(memory_efficiency, 1e-6));
  return std::max({products, others, moved}) + (cost.flops > 0 || cost.bytes > 0 ? launch : 0);
}

const Link& Machine::link_of(Group group) const {
  internal_check(!links.empty(), "a machine without links");
  const int64_t span = (group.size - 1) * group.stride + 1;
  for (const Link& link : links)
    if (span <= link.devices) return link;
  return links.back();
}

double Machine::time_of(Collective collective, double bytes, Group group) const {
  if (group.size < 2 || bytes <= 0) return 0;
  for (const Curve& curve : curves)
    if (curve.collective == collective && curve.devices == group.size)
      return read_curve(curve, bytes);
  // The part of the group inside of each link, innermost first; each link outwards carries one part of the tensor.
  double time = 0, rest = bytes;
  int64_t inside = 1;  // devices of the group that inner links connect
  for (size_t k = 0; k < links.size() && inside < group.size; ++k) {
    const bool last = k + 1 == links.size();
    const int64_t reach = std::max<int64_t>(
        1, last ? group.size : std::min(group.size, links[k].devices / group.stride));
    const int64_t here = std::max<int64_t>(1, (reach + inside - 1) / inside);
    if (here < 2) continue;
    if (collective == Collective::AllToAll) {
      // What goes to devices that this link reaches, and no inner one.
      const double share = static_cast<double>(reach - inside) / static_cast<double>(group.size);
      time += std::ceil(std::log2(static_cast<double>(here))) * links[k].latency +
              share * bytes / links[k].bandwidth;
    } else if (collective == Collective::Send) {
      time = flat_time(collective, bytes, 2, links[k]);
    } else {
      time += flat_time(collective, rest, here, links[k]);
      rest /= static_cast<double>(here);
    }
    inside = reach;
  }
  return time;
}

Machine default_machine() {
  Machine m;
  m.name = "cores";
  m.flops = 6e10;
  m.scalar_flops = 4e9;
  m.bandwidth = 1e10;
  m.memory = 8e9;
  m.product_efficiency = 0.8;
  m.memory_efficiency = 0.7;
  m.launch = 1e-6;
  m.links = {{"host", 1 << 20, 5e-5, 1.5e9}};
  return m;
}

Machine parse_machine(std::string_view text) {
  Machine m;
  Fields fields = fields_of(m);
  std::vector<std::string> known;
  for (const auto& [name, read] : fields) known.push_back(name);
  JsonReader json(text);
  json.object([&](const std::string& key) {
    const auto found = fields.find(key);
    if (found == fields.end()) refuse_key(key, known);
    found->second(json, key);
  });
  json.end();
  user_check(!m.links.empty(), ErrorKind::InvalidArgument,
             "the machine \"{}\" has no links.\nhint: Give \"links\": [{{\"name\": \"net\", "
             "\"devices\": 8, \"latency\": 1e-5, \"bandwidth\": 1e9}}].",
             m.name);
  const bool nested =
      std::is_sorted(m.links.begin(), m.links.end(),
                     [](const Link& a, const Link& b) { return a.devices < b.devices; });
  user_check(nested, ErrorKind::InvalidArgument,
             "the links of \"{}\" do not connect more and more devices.\nhint: Put the innermost "
             "first.",
             m.name);
  return m;
}

std::string to_json(const Machine& m) {
  std::string out = "{\n  \"name\": " + json_quoted(m.name);
  const std::pair<const char*, double> numbers[] = {{"flops", m.flops},
                                                    {"scalar_flops", m.scalar_flops},
                                                    {"bandwidth", m.bandwidth},
                                                    {"memory", m.memory},
                                                    {"product_efficiency", m.product_efficiency},
                                                    {"memory_efficiency", m.memory_efficiency},
                                                    {"launch", m.launch},
                                                    {"overlap", m.overlap}};
  for (const auto& [key, value] : numbers)
    out += format(",\n  \"{}\": {}", key, number_text(value));
  std::vector<std::string> rows;
  for (const Link& l : m.links)
    rows.push_back(
        format("    {{\"name\": {}, \"devices\": {}, \"latency\": {}, \"bandwidth\": {}}}",
               json_quoted(l.name), l.devices, number_text(l.latency), number_text(l.bandwidth)));
  out += ",\n  \"links\": [\n" + join(rows, ",\n") + "\n  ]";
  rows.clear();
  for (const Curve& c : m.curves) {
    std::vector<std::string> points;
    for (const Curve::Point& p : c.points)
      points.push_back(format("[{}, {}]", number_text(p.bytes), number_text(p.seconds)));
    rows.push_back(format("    {{\"collective\": \"{}\", \"devices\": {}, \"points\": [{}]}}",
                          name_of(c.collective), c.devices, join(points, ", ")));
  }
  if (!rows.empty()) out += ",\n  \"curves\": [\n" + join(rows, ",\n") + "\n  ]";
  return out + "\n}\n";
}

double parse_bytes(std::string_view text, std::string_view what) {
  const std::string_view all = text = trim(text);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  const std::string unit = to_lower(trim(text));
  static const std::map<std::string, double> kUnits = {
      {"", 1},      {"b", 1},      {"kb", 1e3},      {"mb", 1e6},      {"gb", 1e9},
      {"tb", 1e12}, {"kib", 1024}, {"mib", 1 << 20}, {"gib", 1 << 30}, {"tib", 1024.0 * (1 << 30)},
      {"k", 1e3},   {"m", 1e6},    {"g", 1e9},       {"t", 1e12}};
  const auto found = kUnits.find(unit);
  user_check(error == std::errc() && found != kUnits.end() && value > 0 && std::isfinite(value),
             ErrorKind::InvalidArgument,
             "{} is \"{}\", which is no amount of memory.\nhint: Write it like 40GB or 512MiB.",
             what, all);
  return value * found->second;
}

std::string bytes_text(double bytes) {
  return at_scale(bytes, 1000, {"B", "kB", "MB", "GB", "TB"});
}

std::string seconds_text(double seconds) {
  return at_scale(seconds * 1e9, 1000, {"ns", "us", "ms", "s"});
}

}  // namespace oar::planner
