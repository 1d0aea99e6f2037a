# A formula for a Homebrew tap of your own: save it as Formula/agentwrap.rb there. pip fetches what agentwrap needs.
# Fill in the checksum of the release: shasum -a 256 agentwrap_cli-0.1.0.tar.gz
class Agentwrap < Formula
  desc "Run a coding agent and know when it works, waits for you, is done or failed"
  homepage "https://pypi.org/project/agentwrap-cli/"
  url "https://files.pythonhosted.org/packages/source/a/agentwrap-cli/agentwrap_cli-0.1.0.tar.gz"
  sha256 "FILL IN"
  license "MIT"

  depends_on "python@3.13"

  def install
    system Formula["python@3.13"].opt_bin/"python3.13", "-m", "venv", libexec
    system libexec/"bin/pip", "install", buildpath
    bin.install_symlink libexec/"bin/agentwrap"
    man1.install_symlink libexec/"share/man/man1/agentwrap.1"
    bash_completion.install_symlink libexec/"share/bash-completion/completions/agentwrap"
    zsh_completion.install_symlink libexec/"share/zsh/site-functions/_agentwrap"
    fish_completion.install_symlink libexec/"share/fish/vendor_completions.d/agentwrap.fish"
  end

  test do
    assert_equal "agentwrap #{version}", shell_output("#{bin}/agentwrap --version").strip
    system bin/"agentwrap", "true"
  end
end
