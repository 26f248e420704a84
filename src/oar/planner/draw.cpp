#include <algorithm>
#include <cmath>

#include "oar/base/string_util.h"
#include "oar/planner/report.h"

namespace oar::planner {
namespace {

constexpr double kWidth = 1000, kLeft = 90, kRight = 30;
constexpr const char* kColours[] = {"#9aa5b1", "#3b7dd8", "#2aa198", "#e08e2b", "#7a5fb0"};
constexpr const char* kKinds[] = {"gather parameters", "forward", "backward", "sum gradients",
                                  "update"};

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '&')
      out += "&amp;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

class Picture {
 public:
  Picture(const SearchResult& result, const Machine& machine, double memory)
      : result_(result), plan_(result.best), machine_(machine), limit_(memory) {}

  std::string draw(const std::string& title) {
    text(kLeft - 60, 34, title, "title");
    const std::string_view fits = plan_.fits ? "" : " (does not fit)";
    text(kLeft - 60, 58,
         format("{} devices of {}: {}", plan_.choice.devices(), machine_.name, plan_.choice.str()),
         "sub");
    text(kLeft - 60, 78,
         format("step {}, bubble {:.1f} %, most memory {} of {}{}", seconds_text(plan_.seconds()),
                100 * plan_.simulation.bubble, bytes_text(plan_.memory), bytes_text(limit_), fits),
         "sub");
    y_ = 112;
    timeline();
    memory_chart();
    placements();
    links();
    alternatives();
    return format(
               "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
               "viewBox=\"0 0 {0:.0f} {1:.0f}\">\n<style>text{{font:13px sans-serif;fill:#24292f}}"
               ".title{{font-size:20px;font-weight:600}}.sub{{fill:#57606a}}.head{{font-size:15px;"
               "font-weight:600}}.small{{font-size:11px;fill:#57606a}}.end{{text-anchor:end}}"
               ".mono{{font-family:monospace;font-size:12px}}</style>\n"
               "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
               kWidth, y_ + 10) +
           out_ + "</svg>\n";
  }

 private:
  void text(double x, double y, std::string_view words, const char* style = "") {
    out_ += format("<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"{}\">{}</text>\n", x, y, style,
                   escaped(words));
  }
  void box(double x, double y, double w, double h, std::string_view colour,
           const std::string& tip = {}, double opacity = 1) {
    out_ += format("<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" fill=\"{}\"",
                   x, y, std::max(w, 0.15), h, colour);
    if (opacity < 1) out_ += format(" fill-opacity=\"{}\"", opacity);
    out_ += tip.empty() ? "/>\n" : format("><title>{}</title></rect>\n", escaped(tip));
  }
  void line(double x1, double y1, double x2, double y2, const char* colour, const char* more = "") {
    out_ +=
        format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\" {}/>\n",
               x1, y1, x2, y2, colour, more);
  }
  void head(std::string_view words) {
    text(kLeft - 60, y_, words, "head");
    y_ += 14;
  }
  double at(double seconds) const {
    return kLeft + seconds / std::max(plan_.seconds(), 1e-12) * (kWidth - kLeft - kRight);
  }
  void time_axis() {
    for (int k = 0; k <= 5; ++k) {
      const double t = plan_.seconds() * k / 5;
      line(at(t), y_, at(t), y_ + 4, "#8c959f");
      text(at(t) + (k == 5 ? 0 : 2), y_ + 16, k == 0 ? "0" : seconds_text(t),
           k == 5 ? "small end" : "small");
    }
    y_ += 44;
  }
  // At most so many stages are drawn, evenly chosen.
  std::vector<int64_t> shown_stages() const {
    const auto count = static_cast<int64_t>(plan_.run.stages.size());
    std::vector<int64_t> shown;
    const int64_t rows = std::min<int64_t>(count, 16);
    for (int64_t r = 0; r < rows; ++r)
      shown.push_back(rows == 1 ? 0 : r * (count - 1) / (rows - 1));
    return shown;
  }

  void timeline() {
    head("Timeline of one pipeline");
    double x = kLeft + 200;
    for (size_t kind = 0; kind < 5; ++kind) {
      const bool used = std::any_of(plan_.simulation.spans.begin(), plan_.simulation.spans.end(),
                                    [&](const Span& s) { return s.kind == kind; });
      if (!used) continue;
      box(x, y_ - 24, 11, 11, kColours[kind]);
      text(x + 16, y_ - 14, kKinds[kind], "small");
      x += 36 + 6.2 * static_cast<double>(std::string_view(kKinds[kind]).size());
    }
    const std::vector<int64_t> shown = shown_stages();
    const double height = shown.size() > 8 ? 16 : 24;
    for (const int64_t stage : shown) {
      text(kLeft - 8, y_ + height - 6, format("stage {}", stage), "small end");
      box(kLeft, y_, kWidth - kLeft - kRight, height - 2, "#f3f4f6");
      for (const Span& span : plan_.simulation.spans)
        if (span.stage == stage) pass(span, height - 2);
      y_ += height;
    }
    time_axis();
  }

  void pass(const Span& span, double height) {
    constexpr double kPointable = 0.8;  // what is narrower has no times to point at
    const double width = at(span.end) - at(span.start);
    const bool of_batch = span.kind == Span::Forward || span.kind == Span::Backward;
    std::string tip =
        of_batch ? format("micro-batch {}, part {}: ", span.micro_batch, span.part) : std::string();
    tip +=
        format("{}, {} to {}", kKinds[span.kind], seconds_text(span.start), seconds_text(span.end));
    // Parts of an interleaved pipeline differ in shade.
    const int64_t turn = span.part / static_cast<int64_t>(plan_.run.stages.size());
    const auto shades = static_cast<double>(plan_.choice.interleave);
    box(at(span.start), y_, width - (width > 3 ? 0.6 : 0), height, kColours[span.kind],
        width < kPointable ? std::string() : tip,
        shades > 1 ? 1 - 0.5 * static_cast<double>(turn) / shades : 1);
    if (of_batch && width > 16 && height > 12)
      out_ += format(
          "<text x=\"{:.1f}\" y=\"{:.1f}\" style=\"font-size:10px;fill:#fff;text-anchor:middle\">{}</text>\n",
          at(span.start) + width / 2, y_ + height / 2 + 3.5, span.micro_batch);
  }

  void memory_chart() {
    const std::vector<int64_t> shown = shown_stages();
    const auto colour = [&](size_t k) {
      const double last = static_cast<double>(std::max<size_t>(shown.size() - 1, 1));
      return format("hsl({:.0f},60%,45%)", 210 - 190 * static_cast<double>(k) / last);
    };
    head("Memory of a device over time");
    for (const size_t k : {size_t{0}, shown.size() - 1}) {
      const double x = kLeft + (k == 0 ? 200 : 290);
      if (k == 0 && shown.size() == 1) break;
      box(x, y_ - 24, 11, 11, colour(k));
      text(x + 16, y_ - 14, format("stage {}", shown[k]), "small");
    }
    y_ += 6;
    // A limit that is far away would leave nothing to see of the memory.
    constexpr double kFar = 3;
    const bool far = limit_ > kFar * plan_.memory;
    const double height = 130, most = (far ? plan_.memory : std::max(limit_, plan_.memory)) * 1.1;
    const auto level = [&](double bytes) { return y_ + height - bytes / most * height; };
    for (int k = 0; k <= 2; ++k) {
      const double bytes = plan_.memory * k / 2, y = level(bytes);
      line(kLeft, y, kWidth - kRight, y, k == 0 ? "#8c959f" : "#e4e7eb");
      text(kLeft - 8, y + 4, k == 0 ? "0" : bytes_text(bytes), "small end");
    }
    for (size_t k = 0; k < shown.size(); ++k) {
      const auto& points = plan_.simulation.memory[static_cast<size_t>(shown[k])];
      std::string path = format("M{:.1f} {:.1f}", at(0), level(points.front().second));
      for (const auto& [t, bytes] : points) path += format("H{:.1f}V{:.1f}", at(t), level(bytes));
      path += format("H{:.1f}", at(plan_.seconds()));
      out_ += format(
          "<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.3\"><title>stage {}</title></path>\n",
          path, colour(k), shown[k]);
    }
    if (far) {
      text(kWidth - kRight, y_ - 18, format("far below the limit of {}", bytes_text(limit_)),
           "small end");
    } else {
      line(kLeft, level(limit_), kWidth - kRight, level(limit_), "#cf222e",
           "stroke-dasharray=\"5 4\"");
      text(kWidth - kRight - 4, level(limit_) - 5, "limit " + bytes_text(limit_), "small end");
    }
    y_ += height;
    time_axis();
  }

  void placements() {
    head("Parameters and states");
    std::vector<PlacementRow> rows = placement_rows(plan_);
    double x = 560;
    for (const AxisPlan& axis : plan_.placed->axes) {
      text(x, y_ + 6, format("{} x {}", axis.axis.name, axis.axis.group.size), "small");
      x += 140;
    }
    y_ += 24;
    constexpr size_t kMost = 24;
    for (size_t r = 0; r < rows.size() && r < kMost; ++r) {
      if (rows[r].names.size() > 34) {
        rows[r].names.resize(31);
        rows[r].names.append("...");
      }
      text(kLeft - 60, y_, rows[r].names, "mono");
      text(300, y_, rows[r].type, "mono");
      if (rows[r].count > 1) text(520, y_, format("x {}", rows[r].count), "small");
      x = 560;
      for (const Layout layout : rows[r].layouts) {
        box(x, y_ - 11, 120, 15, layout >= 0 ? "#3b7dd8" : "#d0d7de", {}, layout >= 0 ? 0.35 : 0.4);
        text(x + 6, y_,
             layout >= 0 ? format("cut along axis {}", static_cast<int>(layout)) : "whole",
             "small");
        x += 140;
      }
      y_ += 18;
    }
    if (rows.size() > kMost) {
      text(kLeft - 60, y_, format("and {} more kinds", rows.size() - kMost), "small");
      y_ += 18;
    }
    y_ += 22;
  }

  void links() {
    const std::vector<LinkRow> rows = link_rows(plan_, machine_);
    head("What a device sends in a step");
    y_ += 10;
    double most = 1e-12;
    for (const LinkRow& row : rows) most = std::max(most, row.seconds);
    if (rows.empty()) text(kLeft - 60, y_, "nothing", "small");
    for (const LinkRow& row : rows) {
      text(kLeft - 60, y_, row.link, "mono");
      text(150, y_, row.what);
      box(360, y_ - 11, row.seconds / most * 320, 14, "#e08e2b", {}, 0.75);
      text(366 + row.seconds / most * 320, y_,
           format("{}, {}", bytes_text(row.bytes), seconds_text(row.seconds)), "small");
      y_ += 20;
    }
    y_ += rows.empty() ? 34 : 22;
  }

  void alternatives() {
    head("This plan and others");
    y_ += 10;
    std::vector<const Plan*> plans{&plan_};
    for (const Plan& plan : result_.told) plans.push_back(&plan);
    for (const Plan& plan : result_.alternatives) plans.push_back(&plan);
    double most = 1e-12;
    for (const Plan* plan : plans) most = std::max(most, plan->seconds());
    for (const Plan* plan : plans) {
      std::string name = plan == &plan_ ? "chosen" : plan->name;
      if (!name.empty()) name.append(": ");
      text(kLeft - 60, y_, name.append(plan->choice.str()));
      y_ += 6;
      const double width = plan->seconds() / most * 560;
      box(kLeft - 60, y_, width, 10,
          plan->fits ? (plan == &plan_ ? "#2aa198" : "#3b7dd8") : "#cf222e", {},
          plan == &plan_ ? 1 : 0.6);
      text(kLeft - 52 + width, y_ + 9,
           format("{}, {}{}", seconds_text(plan->seconds()), bytes_text(plan->memory),
                  plan->fits ? "" : ", too much memory"),
           "small");
      y_ += 30;
    }
  }

  const SearchResult& result_;
  const Plan& plan_;
  const Machine& machine_;
  const double limit_;
  std::string out_;
  double y_ = 0;
};

}  // namespace

std::string draw(const SearchResult& result, const Machine& machine, double memory,
                 const std::string& title) {
  return Picture(result, machine, memory).draw(title);
}

}  // namespace oar::planner
