package integration

import (
	"bufio"
	"context"
	"crypto/x509/pkix"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"curfew/integration/testenv"
)

const (
	azureOwnTests = 245 // of azservicebus 1.11.0, in the packages below
	azureOwnLimit = 4 * time.Minute
)

// azureOwnTest is one of azservicebus' own tests that need a service.
type azureOwnTest struct {
	binary, name string
	why          string // it fails; "": it passes
}

// TestAzureOwn runs the tests of azservicebus that need a service, unmodified, against Curfew. They want one at the ports of TLS: they get it in a
// network of their own. clients/azservicebus/tests.txt says which pass, and why the others do not.
func TestAzureOwn(t *testing.T) {
	t.Parallel()
	namespaces := networkOfItsOwn(t)
	module, binaries := moduleFolder(t, "github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"), t.TempDir()
	cmd := exec.Command("go", "test", "-c", "-trimpath", "-vet=off", "-o", binaries+"/", ".", "./admin", "./internal")
	cmd.Dir, cmd.Env = module, append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	tests := azureOwnList(t)
	known := 0
	for _, name := range []string{"azservicebus", "admin", "internal"} {
		list := exec.Command(filepath.Join(binaries, name+".test"), "-test.list", "^Test")
		list.Env = append(os.Environ(), "AZURE_RECORD_MODE=playback")
		out, err := list.Output()
		require.NoError(t, err)
		known += strings.Count("\n"+string(out), "\nTest")
	}
	require.Equal(t, azureOwnTests, known, "tests: which of the new ones need a service?")

	results := make(map[azureOwnTest]string, len(tests))
	var outputs [2][]byte
	var running sync.WaitGroup
	for i := range outputs {
		var some []azureOwnTest
		for j := i; j < len(tests); j += len(outputs) {
			some = append(some, tests[j])
		}
		running.Go(func() { outputs[i] = runAzureOwn(t, namespaces, binaries, some) })
	}
	running.Wait()
	all := slices.Concat(outputs[0], []byte("\n"), outputs[1])
	for _, m := range regexp.MustCompile(`(?m)^--- (PASS|FAIL|SKIP): (\S+)`).FindAllSubmatch(all, -1) {
		i := slices.IndexFunc(tests, func(x azureOwnTest) bool { return x.name == string(m[2]) })
		require.GreaterOrEqual(t, i, 0, "%s", m[2])
		results[tests[i]] = string(m[1])
	}
	passed := 0
	for _, x := range tests {
		switch result := results[x]; {
		case strings.HasPrefix(x.why, "at times it passes: "): // where the machine is slow
		case result == "PASS" && x.why != "":
			t.Errorf("%s passes: take it off the list of those that fail because %s", x.name, x.why)
		case result == "PASS":
			passed++
		case x.why == "":
			t.Errorf("%s does not pass: %s", x.name, result)
		}
	}
	if t.Logf("%d of %d pass", passed, len(tests)); t.Failed() {
		t.Logf("%s", all)
	}
}

// azureOwnList reads the list of tests.
func azureOwnList(t *testing.T) (tests []azureOwnTest) {
	t.Helper()
	file, err := os.Open("clients/azservicebus/tests.txt")
	require.NoError(t, err)
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		line, why, _ := strings.Cut(lines.Text(), ": ")
		if words := strings.Fields(line); len(words) == 2 && words[0] != "#" {
			tests = append(tests, azureOwnTest{words[0], words[1], why})
		}
	}
	return tests
}

// runAzureOwn runs tests, one after another, against a Curfew of their own. Both are killed with the test.
func runAzureOwn(t *testing.T, namespaces []string, binaries string, tests []azureOwnTest) []byte {
	ctx, cancel := context.WithTimeout(t.Context(), azureOwnLimit)
	defer cancel()
	ca, dir := testenv.NewAuthority(t), t.TempDir()
	cert, key := ca.Write(t, dir, pkix.Name{CommonName: "server"})
	cmd := exec.CommandContext(ctx, "unshare", append(slices.Clone(namespaces), "sh", "clients/azservicebus/run.sh", mustBinary(t, release), ca.CA, cert, key, dir)...)
	var list strings.Builder
	for _, x := range tests {
		list.WriteString(filepath.Join(binaries, x.binary+".test") + " " + x.name + "\n")
	}
	cmd.Stdin, cmd.Env = strings.NewReader(list.String()), environment(nil)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("the run: %v", err)
	}
	return out
}
