// Emscripten before 3.1.21 loads the code by fetch where there is one, and Node's fetch takes no file name.
var fetch;
