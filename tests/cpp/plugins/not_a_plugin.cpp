// A library that is no plug-in.
extern "C" int oar_test_answer() { return 42; }
