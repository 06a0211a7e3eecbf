package rabbitmq

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"curfew/monitor/rabbitmq/cluster"
)

// debianServer is where Debian's package puts RabbitMQ.
const debianServer = "/usr/lib/rabbitmq/bin"

// treeVariable names the tree of another RabbitMQ to test with, as .ci/rabbitmq4 unpacks it. Without it the installed one is tested.
const treeVariable = "TEST_RABBITMQ"

// toolNames are RabbitMQ's own commands, and where they are in a tree.
var toolNames = map[string]string{
	"rabbitmq-server": debianServer + "/rabbitmq-server",
	"rabbitmqctl":     debianServer + "/rabbitmqctl",
	"epmd":            "/usr/bin/epmd",
}

// serverPlugins is the folder of the plugins of the RabbitMQ under test, in its tree; it is known once a node was started.
var serverPlugins string

// version is the version of the RabbitMQ under test, such as 3.10.8; it is known once a node was started.
var version string

func serverVersion() cluster.Server { return cluster.Server{Product: "RabbitMQ", Version: version} }

// family is the range of versions that treat held messages alike.
func family() cluster.Family { return serverVersion().Family() }

// tool returns the path of one of them. All are in one folder, for scripts.
func tool(name string) string { return filepath.Join(scratch, "tools", name) }

// findTools fills that folder with scripts that run the installed commands, or those of a tree inside it. There they see the folder of
// temporary files and the network of this machine.
func findTools() error {
	tree := os.Getenv(treeVariable)
	folders, err := filepath.Glob(filepath.Join(tree, "/usr/lib/rabbitmq/lib/rabbitmq_server-*"))
	if err != nil || len(folders) != 1 {
		if tree != "" {
			return fmt.Errorf("%s: there is no RabbitMQ in %s (`make test-rabbitmq4` fetches it)", treeVariable, tree)
		}
		return errors.New("RabbitMQ is needed: apt-get install -y --no-install-recommends rabbitmq-server (or `make deps`)")
	}
	_, version, _ = strings.Cut(filepath.Base(folders[0]), "-")
	serverPlugins = strings.TrimPrefix(folders[0], tree) + "/plugins"
	if err := os.MkdirAll(tool(""), 0o700); err != nil {
		return err
	}
	for name, path := range toolNames {
		script := "#!/bin/sh\nexec " + path + ` "$@"` + "\n"
		if tree != "" {
			script = inTree(tree, path)
		}
		if err := os.WriteFile(tool(name), []byte(script), 0o700); err != nil {
			return err
		}
	}
	return nil
}

// delayedPlugin builds the plugin of deploy/rabbitmq/delayed, for 4.3, and returns the folder that it is in.
var delayedPlugin = sync.OnceValues(func() (string, error) {
	folder := filepath.Join(scratch, "plugins")
	out, err := exec.Command("../../deploy/rabbitmq/delayed/build", os.Getenv(treeVariable)+serverPlugins, "0.0.0", folder).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build the plugin: %w\n%s", err, out)
	}
	return folder, nil
})

// inTree returns a script that runs the command at path inside the tree, in a mount namespace of its own. It needs no root. The
// change of user clears the signal that the kernel sends when the test ends, so the script sets it again.
func inTree(tree, path string) string {
	return fmt.Sprintf(`#!/bin/sh
exec unshare --map-root-user --mount -- setpriv --pdeathsig KILL sh -ec '
tree=$0
mkdir -p "$tree%[3]s"
for dir in /proc /dev /etc %[3]s; do mount --rbind "$dir" "$tree$dir"; done
exec chroot "$tree" "$@"' %[1]q /usr/bin/env PATH=/usr/bin:/usr/sbin %[2]s "$@"
`, tree, path, os.TempDir())
}
