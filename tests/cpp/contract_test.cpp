#include "kw/core/contract.h"

#include "kw/core/error.h"
#include "kw/core/size.h"
#include "testing/expect.h"
#include "tests/cpp/dozen.h"

using namespace kw;

namespace {

Contract parse_dozen(const char* name) {
  for (const char* text : test::dozen)
    if (std::string_view(text).substr(0, std::string_view(name).size() + 1) == std::string(name) + "(") return parse_contract(text);
  throw Error(KW_ERROR_INTERNAL, std::string("no contract ") + name);
}

// The contract is refused with this sentence, and the caret stands below `at` (its first or last occurrence in the line; the line's end
// when empty).
void refuse(const std::string& text, const std::string& sentence, const std::string& at, int line = __builtin_LINE()) {
  try {
    parse_contract(text);
    test::record(false, __FILE__, line, "accepted: " + text);
  } catch (const Error& e) {
    std::string what = e.what();
    size_t caret_line = what.rfind('\n'), shown_line = caret_line == 0 ? 0 : what.rfind('\n', caret_line - 1);
    std::string shown = what.substr(shown_line + 1, caret_line - shown_line - 1), caret = what.substr(caret_line + 1);
    test::record(e.status() == KW_ERROR_CONTRACT && what.find(sentence) != what.npos, __FILE__, line, "the sentence is: " + what);
    size_t column = caret.size() - 1;
    bool there = at.empty() ? column == shown.size() : column == shown.find(at) || column == shown.rfind(at);
    test::record(there && caret.back() == '^', __FILE__, line, "the caret is elsewhere: " + what);
  }
}

void test_dozen() {
  for (const char* text : test::dozen) {
    Contract c = parse_contract(text);
    KW_EXPECT_EQ(c.text, text);
  }
}

void test_rms_norm() {
  Contract c = parse_dozen("rms_norm");
  KW_EXPECT_EQ(c.name, "rms_norm");
  KW_EXPECT_EQ(c.inputs.size(), 2u);
  KW_EXPECT_EQ(to_text(c.inputs[0].type, c), "T[*B, N]");
  KW_EXPECT(c.inputs[0].type.shape[0].variadic && !c.inputs[0].type.shape[1].variadic);
  KW_EXPECT(!c.inputs[0].type.optional && c.inputs[1].type.optional);
  KW_EXPECT_EQ(c.dims.size(), 2u);
  KW_EXPECT_EQ(c.dims[0], "B");
  KW_EXPECT(c.dim_variadic[0] && !c.dim_variadic[1]);
  KW_EXPECT_EQ(c.types.size(), 2u);
  KW_EXPECT_EQ(c.types[0].options[1].dtype, KW_BF16);
  KW_EXPECT_EQ(c.types[1].options[0].variable, 0);
  KW_EXPECT_EQ(c.types[1].options[1].variable, -1);
  KW_EXPECT_EQ(c.attributes.size(), 1u);
  KW_EXPECT(c.attributes[0].has_default);
  KW_EXPECT_EQ(c.attributes[0].number, 1e-6);
  KW_EXPECT_EQ(*c.attributes[0].at_least, 0.0);
  KW_EXPECT(!c.attributes[0].above && !c.attributes[0].at_most && !c.attributes[0].below);
  KW_EXPECT_EQ(c.results.size(), 1u);
  KW_EXPECT_EQ(c.results[0].present_with, -1);
  KW_EXPECT_EQ(c.gradient->op, "rms_norm_backward");
  KW_EXPECT_EQ(c.gradient->targets.size(), 2u);
  KW_EXPECT_EQ(c.gradient->arguments.size(), 4u);
  KW_EXPECT_EQ(c.gradient->arguments[3], "eps");
  KW_EXPECT(c.capturable);
}

void test_rms_norm_backward() {
  Contract c = parse_dozen("rms_norm_backward");
  KW_EXPECT_EQ(c.results.size(), 3u);
  KW_EXPECT(!c.attributes[0].has_default);
  KW_EXPECT(c.results[1].type.fold == Fold::sum);
  KW_EXPECT(c.results[1].type.optional);
  KW_EXPECT_EQ(c.results[1].present_with, 2);
  KW_EXPECT(c.results[2].kind == Result::Kind::scratch);
  KW_EXPECT_EQ(c.results[2].present_with, 2);
  KW_EXPECT(c.results[2].type.element.kind == ElementType::Kind::accumulator);
  KW_EXPECT_EQ(to_text(c.results[2].type, c), "acc(T)[min(B, 1024), N]");
  KW_EXPECT(c.results[2].type.shape[0].size.kind == Size::Kind::min);
  KW_EXPECT(!c.gradient);
}

void test_others() {
  Contract packed = parse_dozen("swiglu_packed");
  KW_EXPECT_EQ(to_text(packed.inputs[0].type, packed), "T[*B, 2*N]");
  Contract halves = parse_dozen("swiglu_halves");
  KW_EXPECT_EQ(to_text(halves.results[0].type, halves), "T[*B, N/2]");

  Contract ce = parse_dozen("cross_entropy");
  KW_EXPECT_EQ(ce.attributes[0].number, -100.0);
  KW_EXPECT_EQ(*ce.attributes[1].at_most, 1.0);
  KW_EXPECT(ce.attributes[2].type == Attribute::Type::enumeration);
  KW_EXPECT_EQ(ce.attributes[2].values.size(), 2u);
  KW_EXPECT_EQ(ce.attributes[2].number, 0.0);
  KW_EXPECT(ce.results[0].kind == Result::Kind::output);
  KW_EXPECT(ce.results[1].kind == Result::Kind::saved);
  KW_EXPECT(ce.results[2].kind == Result::Kind::scratch);
  KW_EXPECT(ce.results[0].type.shape.empty());
  KW_EXPECT(parse_dozen("cross_entropy_backward").inputs[1].type.written);
  KW_EXPECT(parse_dozen("cross_entropy_backward").results.empty());

  Contract adamw = parse_dozen("adamw");
  KW_EXPECT(adamw.inputs[0].type.list && adamw.inputs[0].type.written && !adamw.inputs[0].type.optional);
  KW_EXPECT(adamw.inputs[1].type.list && !adamw.inputs[1].type.written);
  KW_EXPECT(adamw.inputs[4].type.list && adamw.inputs[4].type.written && adamw.inputs[4].type.optional);
  KW_EXPECT(!adamw.inputs[5].type.list);
  KW_EXPECT(adamw.attributes[1].below && !adamw.attributes[1].at_most);
  KW_EXPECT(adamw.attributes[5].type == Attribute::Type::boolean);
  KW_EXPECT_EQ(adamw.attributes[5].number, 0.0);

  Contract jagged = parse_dozen("jagged_softmax");
  KW_EXPECT_EQ(to_text(jagged.inputs[1].type, jagged), "O[R+1]");
  Contract sample = parse_dozen("sample");
  KW_EXPECT(!sample.capturable);
  Contract rope = parse_dozen("rope");
  KW_EXPECT_EQ(to_text(rope.inputs[1].type, rope), "C[S, D/2]");
  Contract softmax = parse_dozen("softmax");
  KW_EXPECT(softmax.attributes[0].type == Attribute::Type::string && softmax.attributes[0].has_default);
  Contract row_max = parse_dozen("row_max");
  KW_EXPECT_EQ(row_max.results[1].present_with, 1);
  KW_EXPECT(row_max.results[0].type.fold == Fold::max);

  // Results are sorted by kind, whatever the order of the clauses; numbers and operators bind as usual.
  Contract c = parse_contract("f(x: f32[N, M]) -> y: f32[N]\n scratch a: f32[(N+1)*2-M/4/2]\n saved b: f32[M] gradient dx = g(dy, b)");
  KW_EXPECT_EQ(c.results[1].name, "b");
  KW_EXPECT_EQ(to_text(c.results[2].type, c), "f32[(N+1)*2-M/4/2]");
  KW_EXPECT_EQ(to_text(parse_contract("f(x: f32[N]) -> y: f32[N-(N-1)*(2*3)]").results[0].type, c), "f32[N-(N-1)*(2*3)]");
}

void test_words() {
  refuse("", "contract: expected the name of the op, but found the end of the contract", "");
  refuse("f", "expected '(' after the op's name", "");
  refuse("rms_norm(x: T[*B, N, weight: W[N]?) -> y: T[*B, N] where T: f32, W: f32", "the dimension 'weight' must begin with a capital",
         "weight");
  refuse("f(x: f32[N) -> y: f32[N]", "f: expected ']' after the dimensions of x, but found ')'", ") ->");
  refuse("f(x: f32[N]) -> y: f32[N] $", "'$' has no meaning", "$");
  refuse("f(x: f32[N]) -> y: f32[N]\n\n  wheree T: f32", "expected 'where', 'gradient'", "wheree");
  refuse("f(x: f32[1x]) -> y: f32[N]", "a letter follows a number", "x]");
  refuse("f(x: f32[N], *, a: str = \"b) -> y: f32[N]", "expected '\"' at the end of a text", "");
  refuse("f(x: f32[\xff]) -> y: f32[N]", "the byte 0xff", "?]");
  refuse("f(x: f32[N])", "expected '->' before the results", "");
  refuse("f(x: f32[N]) ->", "expected the name of a result", "");
  refuse("f(x: f32[N]) -> (y: f32[N]", "expected ')' after the results", "");
}

void test_names() {
  for (std::string name : {"lambda", "self", "out", "name", "class", "not", "none", "int", "template", "where", "sum", "stream", "True",
                           "_x", "x_", "a__b", "X"})
    KW_EXPECT_THROWS(parse_contract("f(" + name + ": f32[N]) -> y: f32[N]"), "'" + name + "'");
  refuse("f(x: f32[N], lambda: f32[N]) -> y: f32[N]", "the input name 'lambda' is a word of Python", "lambda");
  refuse("f(x: f32[N], *, self: int) -> y: f32[N]", "the attribute name 'self' is reserved by the frameworks", "self");
  refuse("f(x: f32[N]) -> out: f32[N]", "the result name 'out' is reserved", "out");
  refuse("import(x: f32[N]) -> y: f32[N]", "the op's name 'import' is a word of Python", "import");
  refuse("f(x: f32[n]) -> y: f32[N]", "the dimension 'n' must begin with a capital", "n]");
  refuse("f(x: f32[N]) -> y: f32[N] where t: f32", "the type variable 't' must begin with a capital", "t: f32");
  refuse("f(x: f32[N], x: f32[N]) -> y: f32[N]", "two arguments named x", "x: f32[N]) ->");
  refuse("f(x: f32[N], *, x: int) -> y: f32[N]", "two arguments named x", "x: int");
  refuse("f(x: f32[N]) -> (y: f32[N], y: f32[N])", "two results named y", "y: f32[N])");
  refuse("f(x: f32[N]) -> x: f32[N]", "x is the name of an argument and of a result", "x: f32[N]");
  refuse("f(x: f32[N]) -> f: f32[N]", "a result has the name of the op", "f: f32[N]");
}

void test_tensors() {
  refuse("f(x: T[N]) -> y: f32[N]", "the type T is not declared: add 'where T: f32 bf16'", "T[");
  refuse("f(x: float32[N]) -> y: f32[N]", "'float32' is not an element type", "float32");
  refuse("f(x: f32[N], eps: float) -> y: f32[N]", "eps is an attribute: attributes come after '*'", "float");
  refuse("f(x: f32[N], flag: bool) -> y: f32[N]", "flag is an attribute", "bool");
  refuse("f(x: f32[N], *, m: f32[N]) -> y: f32[N]", "m is a tensor: tensors come before '*'", "f32[N]) ->");
  refuse("f(x: f32[N, *B]) -> y: f32[N]", "it comes first in a shape", "*B");
  refuse("f(x: f32[A, A, A, A, A, A, A, A, A]) -> y: f32[A]", "x has more than 8 dimensions", "A]");
  refuse("f(x: f32[N]?...?) -> y: f32[N]", "a second '?'", "?)");
  refuse("f(x: f32[N]) -> y: f32[N]!", "'!' is for inputs", "!");
  refuse("f(x: f32[N]) -> y: f32[N]...", "y cannot be a list", "...");
  refuse("f(x: T[N]) -> y: f32[N] where T: f32 T2", "the type T2 is not declared before T", "T2");
  refuse("f(x: T[N]) -> y: f32[N] where T: f32 f32", "'f32' is there twice", "f32");
  refuse("f(x: T[N]) -> y: f32[N] where T: f32, T: f64", "declared twice", "T: f64");
  refuse("f(x: T[N]) -> y: f32[N] where T: f32 where U: f32", "a second 'where'", "where U");
  refuse("f(x: f32[N]) -> y: f32[N] where U: f32", "no input has the type U", "U: f32");
  refuse("f(x: f32[N]) -> y: U[N] where U: f32", "no input has the type U", "U: f32");
  refuse("f(x: T[T]) -> y: f32[] where T: f32", "T is a type variable, not a dimension", "T]");
}

void test_sizes() {
  refuse("f(x: f32[N]) -> y: f32[M]", "M is not a dimension of any input", "M]");
  refuse("f(x: f32[*B, N]) -> y: f32[*B, N/0]", "divided by a positive number", "0]");
  refuse("f(x: f32[N, M]) -> y: f32[N/M]", "divided by a positive number", "M]");
  refuse("f(x: f32[N]) -> y: f32[min(N, 4)]", "'min' is for the upper bound of a scratch", "min");
  refuse("f(x: f32[99999999999999999999]) -> y: f32[]", "not a whole number that fits 64 bits", "9999");
  refuse("f(x: f32[1.5]) -> y: f32[]", "not a whole number", "1.5");
  refuse("f(x: f32[*B], z: f32[B]) -> y: f32[*B]", "B stands for any number of dimensions: write *B", "B]) ->");
  refuse("f(z: f32[B], x: f32[*B]) -> y: f32[*B]", "B is a single dimension elsewhere", "B]) ->");
  refuse("f(x: f32[N*M]) -> y: f32[N]", "the dimension N of x does not follow", "x: f32");
  refuse("f(x: f32[N+N]) -> y: f32[N]", "the dimension N of x does not follow", "x: f32");
  refuse("f(x: f32[4], w: f32[N]?) -> y: f32[N]", "the dimension N of y is known only when an optional input is there", "y: f32");
  refuse("f(x: f32[" + std::string(30, '(') + "N", "too many parentheses", std::string(13, '(') + "N");
  std::string chain = "N";
  for (int i = 0; i < 40; i++) chain += "+1";
  KW_EXPECT_THROWS(parse_contract("f(x: f32[N]) -> y: f32[" + chain + "]"), "at most 16 operations");
  KW_EXPECT_THROWS(parse_contract("f(x: f32[N]) -> y: f32[N]" + std::string(70000, ' ')), "at most 65536 bytes");
  // Every input's dimensions must follow whichever other optional inputs are there.
  refuse("f(x: f32[4], a: f32[N]?, b: f32[2*N*M, M]?, c: f32[N+M]?) -> y: f32[4]", "the dimension N of c does not follow", "c: f32");
  parse_contract("f(x: f32[A, 2*N-A, (M+N)*3]) -> y: f32[M]");
}

void test_attributes() {
  refuse("f(x: f32[N], *, a: double) -> y: f32[N]", "is not a type of attributes", "double");
  refuse("f(x: f32[N], *, a: int >= 1 >= 2) -> y: f32[N]", "a second lower bound of a", ">= 2");
  refuse("f(x: f32[N], *, a: float > 1 < 1) -> y: f32[N]", "no value of a is within its bounds", "< 1");
  refuse("f(x: f32[N], *, a: int >= 1.5) -> y: f32[N]", "not a whole number below 2^53", "1.5");
  refuse("f(x: f32[N], *, a: int = 9007199254740993) -> y: f32[N]", "not a whole number below 2^53", "9007");
  refuse("f(x: f32[N], *, a: float >= 0 = -1) -> y: f32[N]", "the default of a is outside its bounds", "-1");
  refuse("f(x: f32[N], *, a: float = 1e999) -> y: f32[N]", "does not fit a double", "1e999");
  refuse("f(x: f32[N], *, a: bool = 1) -> y: f32[N]", "expected true or false", "1)");
  refuse("f(x: f32[N], *, a: str = b) -> y: f32[N]", "expected a text in '\"'", "b)");
  refuse("f(x: f32[N], *, a: mean|sums = max) -> y: f32[N]", "'max' is not a choice of a", "max)");
  refuse("f(x: f32[N], *, a: mean|mean) -> y: f32[N]", "the choice mean is there twice", "mean)");
  refuse("f(x: f32[N], *, a: int, *, b: int) -> y: f32[N]", "a second '*'", "*, b");
  refuse("f(x: f32[N], *) -> y: f32[N]", "expected ',' after '*'", ") ->");
  Contract c = parse_contract("f(x: f32[N], *, a: float > -1.5e-3 <= 2 = 0.25, b: int = -7) -> y: f32[N]");
  KW_EXPECT_EQ(*c.attributes[0].above, -1.5e-3);
  KW_EXPECT_EQ(c.attributes[0].number, 0.25);
  KW_EXPECT_EQ(c.attributes[1].number, -7.0);
  KW_EXPECT(c.attributes[1].type == Attribute::Type::integer);
}

void test_results() {
  refuse("f(x: f32[N]) -> ()", "the op has no result and writes no input", "->");
  refuse("f(x: f32[N]?) -> y: f32[4]", "an op needs an input that is always there", "->");
  refuse("f() -> y: f32[4]", "an op needs an input that is always there", "->");
  refuse("f(x: f32[N]) -> y: f32[N]?", "y is optional, but no input is", "y: f32");
  refuse("f(x: f32[N], a: f32[N]?, b: f32[N]?) -> y: f32[N]?", "say which input y comes with: '? with input'", "y: f32");
  refuse("f(x: f32[N], a: f32[N]?) -> y: f32[N]? with x", "x is always there", "x");
  refuse("f(x: f32[N], a: f32[N]?) -> y: f32[N]? with c", "'c' is not an input", "c");
  refuse("f(x: f32[N], a: f32[N]?) -> y: f32[N] with a", "expected '?' before 'with'", "a");
  refuse("f(x: f32[*B, N]) -> y: f32[N]", "y lacks *B: say how rows fold into it", "y: f32");
  KW_EXPECT(parse_contract("f(x: f32[*B, N], t: i64[*B] < N) -> y: all f32[]").results[0].type.fold == Fold::all);
  KW_EXPECT_EQ(parse_contract("f(x: f32[*B, N], t: i64[*B] < N) -> y: all f32[]").inputs[1].below, 1);
  refuse("f(x: f32[*B, N], t: f32[*B] < N) -> y: f32[*B]", "t counts within a dimension ('<'), but may hold other numbers than whole ones",
         "t: f32");
  refuse("f(x: f32[*B, N], t: i64[*B] < M) -> y: f32[*B]", "the dimension M that t counts within does not follow", "t: i64");
  refuse("f(x: f32[*B, N], t: i64[*B] < 7) -> y: f32[*B]", "expected the dimension that the numbers of t count within", "7");
  refuse("f(x: f32[*B, N]) -> y: sum f32[*B, N]", "nothing folds into y: it has the rows itself", "y: sum");
  refuse("f(x: f32[N]) -> y: sum f32[N]", "nothing folds into y: no input has rows", "y: sum");
  refuse("f(x: f32[N]) -> y: f32[N] scratch s: sum f32[N]", "nothing folds into scratch", "sum");
  refuse("f(x: f32[N]) -> y: f32[N] saved s: f32[N]", "s is saved for a gradient, but there is none", "s: f32");
  refuse("f(x: f32[N]) -> y: f32[N] not capturable\nnot capturable", "a second 'not capturable'", "not capturable");
  refuse("f(x: f32[N]..., z: f32[N]) -> y: f32[4]", "a dimension of z is also one of the items of a list", "z: f32");
  refuse("f(x: f32[N]...) -> y: f32[N]", "a dimension of y is one of the items of a list", "y: f32");
}

void test_gradient() {
  const std::string op = "f(x: f32[N], i: i64[N], w: f32[N]?, *, a: int) -> (y: f32[N], n: i64[N])\n";
  parse_contract(op + "gradient dx = g(dy, x, n, w, a)");
  const Contract shared = parse_contract("f(x: f32[N], r: f32[N], w: f32[N]) -> y: f32[N] gradient dx and dr, dw = g(dy, w)");
  KW_EXPECT((shared.gradient->targets == std::vector<std::string>{"dx", "dr", "dw"}));
  KW_EXPECT((shared.gradient->results == std::vector<size_t>{0, 0, 1}));
  refuse(op + "gradient dx and = g(dy)", "expected the gradient of an input", "= g");
  refuse(op + "gradient dx and dx = g(dy)", "dx is there twice", "dx = ");
  refuse(op + "gradient dz = g(dy)", "'dz' is not 'd' and the name of an input", "dz");
  refuse(op + "gradient x = g(dy)", "'x' is not 'd' and the name of an input", "x");
  refuse(op + "gradient di = g(dy)", "i has whole numbers, which have no gradient", "di = ");
  refuse(op + "gradient dx, dx = g(dy)", "dx is there twice", "dx = ");
  refuse(op + "gradient dx = f(dy)", "the gradient of an op is another op", "f(");
  refuse(op + "gradient dx = g(dq)", "'dq' is neither", "dq");
  refuse(op + "gradient dx = g(dy, dn)", "n has whole numbers, so there is no dn", "dn");
  refuse(op + "gradient dx = g(x)", "the gradient does not take dy", "g(x");
  refuse(op + "gradient dx = g(dy)\ngradient dx = g(dy)", "a second 'gradient'", "gradient");
  refuse(op + "scratch s: f32[N] gradient dx = g(dy, s)", "s is scratch", "s)");
  refuse("f(x: f32[N]!) -> y: f32[N] gradient dx = g(dy)", "x is written in place: such an op has no gradient", "gradient");
  refuse("f(x: f32[N], dy: f32[N]) -> y: f32[N] gradient dx = g(dy)", "dy is both", "dy)");
  refuse("f(x: f32[N]...) -> y: f32[4] gradient dx = g(dy)", "x is a list, which has no gradient", "dx");
}

void test_limits() {
  std::string many;
  for (int i = 0; i < 17; i++) many += (i ? ", a" : "a") + std::to_string(i) + ": f32[4]";
  KW_EXPECT_THROWS(parse_contract("f(" + many + ") -> y: f32[4]"), "at most 16 inputs");
  KW_EXPECT_THROWS(parse_contract("f(x: f32[4]) -> (" + many + ")"), "at most 16 results");
  std::string dims;
  for (int i = 0; i < 17; i++) dims += (i ? ", a" : "a") + std::to_string(i) + ": f32[N" + std::to_string(i) + "]";
  KW_EXPECT_THROWS(parse_contract("f(" + dims + ") -> y: f32[4]"), "f: ");
}

}  // namespace

int main() {
  test_dozen();
  test_rms_norm();
  test_rms_norm_backward();
  test_others();
  test_words();
  test_names();
  test_tensors();
  test_sizes();
  test_attributes();
  test_results();
  test_gradient();
  test_limits();
  return test::finish();
}
