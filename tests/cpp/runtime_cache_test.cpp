// SHA-256, and the disk cache: right, or ignored.
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "kw/core/error.h"
#include "kw/runtime/disk_cache.h"
#include "kw/runtime/sha256.h"
#include "testing/expect.h"

namespace fs = std::filesystem;
using namespace kw;

static std::string plain_hash(std::string_view text) {
  Sha256 sha;
  sha.update(text.data(), text.size());
  return hex(sha.finish());
}

static void sha256() {  // FIPS 180-4's own examples, and a length that ends in every place of a block
  KW_EXPECT_EQ(plain_hash(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  KW_EXPECT_EQ(plain_hash("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  KW_EXPECT_EQ(plain_hash("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
               "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  KW_EXPECT_EQ(plain_hash(std::string(1000000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  for (size_t cut = 0; cut <= 130; cut++) {  // in two pieces, the same
    std::string text(130, 'x');
    Sha256 sha;
    sha.update(text.data(), cut), sha.update(text.data() + cut, text.size() - cut);
    KW_EXPECT_EQ(hex(sha.finish()), plain_hash(text));
  }
  KW_EXPECT(Sha256().add("ab").add("c").finish() != Sha256().add("a").add("bc").finish());
}

static std::string slurp(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
static void spit(const fs::path& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

int main() {
  sha256();

  char temporary[] = "/tmp/kw_cache_test_XXXXXX";
  fs::path root = mkdtemp(temporary), dir = root / "deep" / "cache";
  setenv("KW_CACHE_DIR", dir.c_str(), 1);
  unsetenv("KW_CACHE");
  const Digest key = Sha256().add("one").finish(), other = Sha256().add("two").finish();
  const fs::path file = dir / (hex(key) + ".kernel");
  const CompiledKernel kernel{"_Z4copyv", std::string("code\0with a zero", 16)};
  auto same = [&](const std::optional<CompiledKernel>& k) { return k && k->name == kernel.name && k->code == kernel.code; };

  KW_EXPECT(!load_from_disk(key));
  KW_EXPECT_EQ(fs::status(dir).permissions(), fs::perms::owner_all);  // made, and ours alone
  save_to_disk(key, kernel);
  KW_EXPECT(same(load_from_disk(key)));
  KW_EXPECT(!load_from_disk(other));
  KW_EXPECT_EQ(std::distance(fs::directory_iterator(dir), fs::directory_iterator()), 1);  // no .part left

  // Every damage is a miss, and the next save mends it.
  const std::string good = slurp(file);
  for (size_t length = 0; length < good.size(); length++) {
    spit(file, good.substr(0, length));
    KW_EXPECT(!load_from_disk(key));
  }
  for (size_t i = 0; i < good.size(); i++) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x10);
    spit(file, bad);
    KW_EXPECT(!load_from_disk(key));
  }
  spit(file, good + "more");
  KW_EXPECT(!load_from_disk(key));
  fs::remove(file);
  KW_EXPECT_EQ(mkfifo(file.c_str(), 0600), 0);  // nobody ever writes into it: must not be waited for
  KW_EXPECT(!load_from_disk(key));
  fs::remove(file);
  spit(dir / (hex(other) + ".kernel"), good);  // right in itself, under another's name
  KW_EXPECT(!load_from_disk(other));
  save_to_disk(key, kernel);
  KW_EXPECT(same(load_from_disk(key)));

  std::vector<std::thread> threads;  // writers and readers of one key: whole or absent
  std::atomic<int> torn{0};
  for (int t = 0; t < 4; t++)
    threads.emplace_back([&] {
      for (int i = 0; i < 200; i++) {
        save_to_disk(key, kernel);
        if (!same(load_from_disk(key))) torn++;
      }
    });
  for (auto& t : threads) t.join();
  KW_EXPECT_EQ(torn.load(), 0);

  setenv("KW_CACHE", "0", 1);
  KW_EXPECT(!load_from_disk(key));
  unsetenv("KW_CACHE");

  // A folder that others may write to, or that is someone else's, is refused with a reason.
  std::string why;
  chmod(dir.c_str(), 0777);
  KW_EXPECT_EQ(disk_cache_dir(&why), "");
  KW_EXPECT(why.find("may be written by other users") != std::string::npos);
  KW_EXPECT(!load_from_disk(key));
  chmod(dir.c_str(), 0700);
  KW_EXPECT(same(load_from_disk(key)));
  if (geteuid() == 0) {  // only root can give a folder away
    KW_EXPECT_EQ(chown(dir.c_str(), 12345, 12345), 0);
    KW_EXPECT_EQ(disk_cache_dir(&why), "");
    KW_EXPECT(why.find("belongs to another user") != std::string::npos);
  }

  // No place to write: told, never thrown. /dev/null/x cannot be made by anybody, and /dev/full takes nothing.
  setenv("KW_CACHE_DIR", "/dev/null/cache", 1);
  KW_EXPECT_EQ(disk_cache_dir(&why), "");
  KW_EXPECT(why.find("cannot be made") != std::string::npos);
  save_to_disk(key, kernel);
  KW_EXPECT(!load_from_disk(key));
  unsetenv("KW_CACHE_DIR"), unsetenv("XDG_CACHE_HOME"), unsetenv("HOME");
  KW_EXPECT_EQ(disk_cache_dir(&why), "");
  KW_EXPECT(why.find("no place") != std::string::npos);

  fs::remove_all(root);
  return kw::test::finish();
}
