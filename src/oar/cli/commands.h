// The subcommands of `oar`. Each prints to `out` and returns the exit status.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

namespace oar::cli {

// Checks the machine and the installation; 1 if something is wrong.
int doctor(std::ostream& out, bool color, bool json);

// The flags with their values.
int show_flags(std::ostream& out, bool color);

struct OpsQuery {
  std::string name;    // one op in full; empty lists all
  std::string family;  // restricts the list
};
int show_ops(std::ostream& out, bool color, const OpsQuery& query);

struct InspectQuery {
  std::string
      path;  // of a program's text, a model or a file of tensors; "-" is a text from standard input
  std::string svg;  // where to draw it; empty prints it
  bool optimise = false;
  std::string method = "forward", weights = {};  // of a model
  bool json = false;
};
int inspect(std::ostream& out, bool color, const InspectQuery& query);

// The dashboard. It is written in Python, which takes this process over and parses the words itself.
int board(const std::vector<std::string>& words);

struct PlanQuery {
  std::string path,
      method = "forward";  // a training step: .oar, the text of a program, or a description .json
  std::string mesh, memory,
      machine;  // "8x4", "40GB", a file; empty: any mesh, the machine's, this one
  int64_t devices = 0, batch = 0;  // 0: of the mesh; the model's
  std::vector<std::string> told, places;
  std::string svg;  // where to draw it; empty: nowhere
  bool json = false;
};
// How a training step runs on many devices; 1 if it does not fit into their memory.
int plan(std::ostream& out, bool color, const PlanQuery& query);

// `calibrate`. The Python package takes this process over and parses the words.
int distributed(const std::vector<std::string>& words);

struct ConvertQuery {
  std::string source, target, weights, method;
  std::vector<std::string> shapes;  // "name=1,3,224,224"
  int opset = 0;                    // 0: the usual one
  double tolerance = 0;             // 0: the usual one
  bool compare = false, json = false;
};
// Models and weights in another format; 1 if a comparison found too large a difference. Files of Oar's own format are written by the
// Python package, which then takes this process over.
int convert(std::ostream& out, const ConvertQuery& query);

struct OcrQuery {
  std::vector<std::string> images;
  std::string models;    // a folder; empty: the one that was fetched
  std::string language;  // chooses among the models
  std::string draw;      // where to draw the boxes; empty: nowhere
  bool json = false;
  bool fetch = false;  // the models, and nothing else
};
// The text in images; 1 if one of them could not be read.
int ocr(std::ostream& out, const OcrQuery& query);

}  // namespace oar::cli
