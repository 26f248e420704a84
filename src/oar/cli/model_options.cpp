#include "oar/cli/model_options.h"

#include <iostream>
#include <memory>

#include "oar/cli/commands.h"
#include "oar/cli/model_commands.h"

namespace oar::cli {
namespace {

void add_model(CLI::App& command, ModelChoice& model) {
  command
      .add_option(
          "model", model.path,
          "The model: .oar, .pdmodel, .json (PIR), .onnx, .tflite or .prototxt; or a prefix or folder")
      ->required();
  command.add_option("--method", model.method,
                     "The method of an .oar file; forward if none is named");
  command.add_option(
      "--weights", model.weights,
      "The file of weights of a model that has two files, if it is not beside the first");
  command.add_flag("--verify", model.verify,
                   "Compare the weights of an .oar file with their checksums");
  command.add_option("--threads", model.threads, "How many threads an op may use")
      ->check(CLI::Range(1, 1024));
}

void add_inputs(CLI::App& command, InputOptions& inputs) {
  command
      .add_option(
          "--input", inputs.files,
          "An input: NAME=FILE, or FILE if there is one; .npy, .npz, JPEG, PNG or JSON. Several images make a batch")
      ->allow_extra_args(false);
  command.add_option("--shape", inputs.shapes, "The shape of a random input: NAME=1,3,224,224")
      ->allow_extra_args(false);
  command.add_option("--seed", inputs.seed, "Of random inputs");
  command.add_flag("--cast", inputs.cast, "Convert arrays whose dtype is not the model's");
  command.add_option("--size", inputs.size,
                     "Scale images to this size: 224, or 480x640 (height x width)");
  command
      .add_option("--mean", inputs.mean,
                  "Subtracted from pixels, one number or one for each channel")
      ->delimiter(',')
      ->allow_extra_args(false);
  command.add_option("--std", inputs.std, "Pixels are divided by it, after the mean")
      ->delimiter(',')
      ->allow_extra_args(false);
  command.add_option("--scale", inputs.scale,
                     "Pixels are multiplied by it, before the mean; 1/255 for floating inputs");
  command.add_option("--layout", inputs.layout,
                     "chw or hwc; the input's shape decides if it is left out");
  command.add_flag("--bgr", inputs.bgr, "Blue comes first");
}

void add_run(CLI::App& app, bool color, int& status) {
  auto query = std::make_shared<RunQuery>();
  CLI::App* command = app.add_subcommand("run", "Run a model of any format and show its outputs.");
  add_model(*command, query->model);
  add_inputs(*command, query->inputs);
  command->add_flag("--random", query->inputs.random, "Random numbers for inputs without a file");
  command->add_option("--output", query->output,
                      "Write the outputs: a folder, or a file .npz or .npy");
  command->add_option("--labels", query->labels, "A file with the name of a class in each line");
  command->add_flag("--json", query->json, "Print JSON");
  command->footer(
      "Examples:\n"
      "  oar run net.onnx --random\n"
      "  oar run net.oar --input x=batch.npy --output results.npz\n"
      "  oar run resnet.onnx --input cat.jpg --mean 0.485,0.456,0.406 --std 0.229,0.224,0.225\n"
      "Status 1: the model ran, and an output has nothing but NaN or infinity.");
  command->callback([query, color, &status] { status = run_model(std::cout, color, *query); });
}

void add_bench(CLI::App& app, bool color, int& status) {
  auto query = std::make_shared<BenchQuery>();
  CLI::App* command = app.add_subcommand("bench", "Measure how fast a model runs.");
  add_model(*command, query->model);
  add_inputs(*command, query->inputs);
  command->add_option("--batch", query->inputs.batch,
                      "The first size of random inputs, where it is open");
  command->add_option("--warmup", query->warmup, "Runs before those that are measured");
  command->add_option("--repeat", query->repeat, "Runs that are measured");
  command->add_flag("--profile", query->profile, "Show the time of each op");
  command->add_flag("--json", query->json, "Print JSON");
  command->footer(
      "Inputs without a file are random numbers.\n"
      "Examples:\n"
      "  oar bench net.onnx --batch 8 --threads 4\n"
      "  oar bench net.oar --repeat 100 --profile");
  command->callback([query, color, &status] { status = bench_model(std::cout, color, *query); });
}

void add_convert(CLI::App& app, int& status) {
  auto query = std::make_shared<ConvertQuery>();
  CLI::App* command =
      app.add_subcommand("convert", "Convert a model, or a file of weights, to another format.");
  command->add_option("source", query->source, "The model or file of weights")->required();
  command
      ->add_option(
          "target", query->target,
          "The file to write; its ending is the format: .oar, .onnx, .json (Paddle's PIR); .safetensors, .npz, .pdparams for weights")
      ->required();
  command->add_option("--input-shape", query->shapes, "The shape of an input: NAME=1,3,224,224")
      ->allow_extra_args(false);
  command->add_option("--weights", query->weights,
                      "The file of weights of a model that has two files");
  command->add_option("--method", query->method, "The method of an .oar file");
  command->add_option("--opset", query->opset, "The version of ONNX's operators");
  command->add_option(
      "--tolerance", query->tolerance,
      "The largest difference that --compare accepts, as a part of the largest value");
  command->add_flag(
      "--compare", query->compare,
      "Run the model before and after, and in its own framework if that is installed");
  command->add_flag("--json", query->json, "Print JSON");
  command->footer(
      "Examples:\n"
      "  oar convert net.onnx net.oar --compare\n"
      "  oar convert inference.pdmodel net.onnx --input-shape x=1,3,224,224\n"
      "  oar convert weights.pth weights.safetensors\n"
      "Status 1: it is converted, and --compare found a larger difference than --tolerance.\n"
      ".oar files are written by the Python package; all others need no Python.");
  command->callback([query, &status] { status = convert(std::cout, *query); });
}

void add_train(CLI::App& app, bool color, int& status) {
  auto query = std::make_shared<TrainQuery>();
  CLI::App* command =
      app.add_subcommand("train", "Train with a step that Python saved, without Python.");
  add_model(*command, query->model);
  command
      ->add_option("--data", query->data, "An .npz file with an array for each input of the step")
      ->required();
  command->add_option("--epochs", query->epochs, "How often all samples are seen");
  command->add_option("--batch", query->batch, "Samples of a step");
  command->add_option("--seed", query->seed, "Of the order of samples and of random numbers");
  command->add_flag("!--no-shuffle", query->shuffle, "Keep the order of the samples");
  command->add_flag("--drop-last", query->drop_last, "Leave out the last batch if it is smaller");
  command->add_option("--checkpoint", query->checkpoint, "A folder for checkpoints");
  command->add_option("--save-every", query->save_every,
                      "Steps between checkpoints; at the end of each epoch if it is left out");
  command->add_flag("--resume", query->resume, "Continue from the last checkpoint");
  command->add_option("--output", query->output, "Write the trained states: .safetensors or .npz");
  command->add_flag("--json", query->json, "Print a line of JSON for each epoch");
  command->footer(
      "Examples:\n"
      "  oar train step.oar --data train.npz --epochs 10 --batch 64 --output trained.safetensors\n"
      "  oar train step.oar --data train.npz --epochs 10 --checkpoint run --save-every 100 --resume\n"
      "Status 1: the loss is not finite any more, and training stopped.");
  command->callback([query, color, &status] { status = train_model(std::cout, color, *query); });
}

void add_plan(CLI::App& app, bool color, int& status) {
  auto query = std::make_shared<PlanQuery>();
  CLI::App* command = app.add_subcommand(
      "plan", "Plan a training step on many devices: replicas, cut tensors, pipelines.");
  command
      ->add_option(
          "model", query->path,
          "A training step: an .oar file, the text of a program, or a description of a transformer (.json)")
      ->required();
  command->add_option("--mesh", query->mesh, "The devices as a mesh, outermost axis first: 8x4");
  command->add_option("--devices", query->devices, "The number of devices, in any mesh");
  command->add_option("--memory", query->memory,
                      "Of a device: 40GB; the machine's if it is left out");
  command->add_option("--machine", query->machine,
                      "A description of the machine, as `oar distributed calibrate` writes it");
  command->add_option("--batch", query->batch, "The batch of a description");
  command
      ->add_option("--compare", query->told,
                   "A plan to compare with: \"mine: data=8,tensor=4,micro=2,zero=1\"")
      ->allow_extra_args(false);
  command
      ->add_option("--place", query->places,
                   "Fix a value along the tensor axis: NAME=AXIS, or NAME=whole")
      ->allow_extra_args(false);
  command->add_option("--method", query->method,
                      "The method of an .oar file; forward if none is named");
  command->add_option("--svg", query->svg, "Draw the plan into this file, too");
  command->add_flag("--json", query->json, "Print JSON; oar.distributed.load_plan reads it");
  command->footer(
      "Examples:\n"
      "  oar plan step.oar --mesh 8x4 --memory 40GB --svg plan.svg\n"
      "  oar plan examples/planner/small.json --machine examples/planner/a100.json --mesh 4x4\n"
      "Status 1: no plan fits into the memory.");
  command->callback([query, color, &status] { status = plan(std::cout, color, *query); });

  CLI::App* measured = app.add_subcommand(
      "distributed", "Measure processes of this machine: oar distributed calibrate.");
  measured->set_help_flag();
  measured->prefix_command();
  measured->callback([measured, &status] { status = distributed(measured->remaining()); });
}

}  // namespace

void add_model_commands(CLI::App& app, bool color, int& status) {
  add_run(app, color, status);
  add_bench(app, color, status);
  add_convert(app, status);
  add_train(app, color, status);
  add_plan(app, color, status);
}

}  // namespace oar::cli
