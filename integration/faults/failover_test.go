package faults

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"curfew/integration/testenv"
)

// electionLimit is how long Sentinels may take to agree on another master, and to tell
// the old one.
const electionLimit = time.Minute

// TestSentinelFailsOver: three Sentinels over a master and its replica. First the
// replica is cut off and the master killed, so that what is promoted is stale: it lacks
// what was added and still has what was settled. Then the new master is stopped until
// the other has been promoted, and goes on as a second master until it learns of that. Nothing
// is lost, early or twice, and deadlines fire throughout.
func TestSentinelFailsOver(t *testing.T) {
	t.Parallel()
	master := testenv.StartRedis(t)
	host, port, err := net.SplitHostPort(master.Addr)
	check(t, err)
	replica := testenv.StartRedis(t, "--replicaof", host, port)
	url := startSentinels(t, master, replica)
	tr := newTrial(t, t.TempDir())
	tr.settings = []string{"REDIS_URL=" + url}
	tr.tell()
	tr.start()
	tr.process.ready()
	tr.declare()
	tr.scheduleUp()
	r := tr.rounds()
	r.publish(t, "before", 15_000)
	r.publish(t, "before", roundDue)

	replica.Do("CONFIG", "SET", "masteruser", "nobody")
	replica.Do("CONFIG", "SET", "masterauth", "none")
	master.Do("CLIENT", "KILL", "TYPE", "replica")
	eventually(t, answerLimit, "the replica to be cut off", func() bool { return replication(replica, "master_link_status:down") })
	r.publish(t, "stale", 15_000)
	r.publish(t, "stale", roundDue)
	pause(1500)
	master.Kill()
	r.run("no master")
	eventually(t, electionLimit, "the replica to be promoted", func() bool { return replication(replica, "role:master") })
	tr.scheduleUp()
	r.run("promoted")

	replica.Do("CONFIG", "SET", "masteruser", "")
	replica.Do("CONFIG", "SET", "masterauth", "")
	master.Restart()
	eventually(t, electionLimit, "the old master to be a replica", func() bool { return replication(master, "master_link_status:up") })
	replica.Pause()
	r.run("a master that is silent")
	eventually(t, electionLimit, "the old master to be promoted", func() bool { return replication(master, "role:master") })
	replica.Resume()
	r.run("two masters")
	tr.scheduleUp()
	r.run("one master")
	r.end()
}

// replication reports whether INFO replication of a server has a line.
func replication(server *testenv.Redis, line string) bool {
	info, _ := server.Do("INFO", "replication").(string)
	return strings.Contains(info, line)
}

// startSentinels starts three that watch a master, and returns when they know one
// another and its replica.
func startSentinels(t *testing.T, master, replica *testenv.Redis) (url string) {
	t.Helper()
	eventually(t, startLimit, "the replica to be in step", func() bool { return replication(replica, "master_link_status:up") })
	host, port, err := net.SplitHostPort(master.Addr)
	check(t, err)
	dir := t.TempDir()
	var addrs []string
	for i := range 3 {
		addr := testenv.FreeAddr()
		_, own, err := net.SplitHostPort(addr)
		check(t, err)
		conf := filepath.Join(dir, fmt.Sprint("sentinel", i, ".conf"))
		check(t, os.WriteFile(conf, fmt.Appendf(nil, "bind 127.0.0.1\nport %s\ndir %s\nsentinel monitor main %s %s 2\n"+
			"sentinel down-after-milliseconds main 500\nsentinel failover-timeout main 3000\n", own, dir, host, port), 0o600))
		runServer(t, "redis-server", conf, "--sentinel")
		addrs = append(addrs, addr)
	}
	eventually(t, startLimit, "the Sentinels to know one another", func() bool {
		for _, addr := range addrs {
			_, own, _ := net.SplitHostPort(addr)
			out, _ := exec.Command("redis-cli", "-p", own, "SENTINEL", "MASTER", "main").Output()
			words := strings.Fields(string(out))
			if word(words, "num-other-sentinels") != "2" || word(words, "num-slaves") != "1" {
				return false
			}
		}
		return true
	})
	return "redis-sentinel://" + strings.Join(addrs, ",") + "?master_name=main"
}

// word is the one after a name.
func word(words []string, name string) string {
	for i := range len(words) - 1 {
		if words[i] == name {
			return words[i+1]
		}
	}
	return ""
}

// runServer runs a program until the test ends.
func runServer(t *testing.T, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	check(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
}

// TestSlotsMove: a Redis Cluster of three nodes, between which the slots of the
// schedule's keys are moved again and again while deadlines are written and claimed.
func TestSlotsMove(t *testing.T) {
	t.Parallel()
	var nodes []*testenv.Redis
	create := []string{"--cluster", "create"}
	for range 3 {
		_, bus, err := net.SplitHostPort(testenv.FreeAddr())
		check(t, err)
		node := testenv.StartRedis(t, "--cluster-enabled", "yes", "--cluster-port", bus, "--cluster-config-file", filepath.Join(t.TempDir(), "nodes.conf"))
		nodes = append(nodes, node)
		create = append(create, node.Addr)
	}
	cluster(t, append(create, "--cluster-replicas", "0", "--cluster-yes")...)
	eventually(t, startLimit, "the cluster to be whole", func() bool {
		for _, node := range nodes {
			if info, _ := node.Do("CLUSTER", "INFO").(string); !strings.Contains(info, "cluster_state:ok") {
				return false
			}
		}
		return true
	})
	tr := newTrial(t, t.TempDir())
	tr.settings = []string{"REDIS_URL=redis-cluster://" + nodes[0].Addr}
	tr.tell()
	tr.start()
	tr.process.ready()
	tr.declare()
	tr.scheduleUp()
	r := tr.rounds()
	r.run("still")
	for i := range 6 {
		from, to := nodes[i%3], nodes[(i+1)%3]
		r.publish(t, "moving", roundDue)
		moved := moveKeys(t, from, to)
		t.Logf("%d slots moved", moved)
		r.run("moved")
	}
	tr.scheduleUp()
	r.run("still again")
	r.end()
}

// moveKeys moves every slot of a node that holds a key to another node.
func moveKeys(t *testing.T, from, to *testenv.Redis) (slots int) {
	t.Helper()
	fromID, toID := from.Do("CLUSTER", "MYID").(string), to.Do("CLUSTER", "MYID").(string)
	host, port, err := net.SplitHostPort(to.Addr)
	check(t, err)
	moved := map[int64]bool{}
	for _, key := range from.Do("KEYS", "*").([]any) {
		slot := from.Do("CLUSTER", "KEYSLOT", key).(int64)
		if moved[slot] {
			continue
		}
		moved[slot] = true
		to.Do("CLUSTER", "SETSLOT", slot, "IMPORTING", fromID)
		from.Do("CLUSTER", "SETSLOT", slot, "MIGRATING", toID)
		pause(50) // some keys here, some there
		for {
			keys := from.Do("CLUSTER", "GETKEYSINSLOT", slot, 10).([]any)
			if len(keys) == 0 {
				break
			}
			from.Do(append([]any{"MIGRATE", host, port, "", 0, 5000, "KEYS"}, keys...)...)
		}
		for _, node := range []*testenv.Redis{to, from} {
			node.Do("CLUSTER", "SETSLOT", slot, "NODE", toID)
		}
	}
	return len(moved)
}

func cluster(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command("redis-cli", args...).CombinedOutput(); err != nil {
		t.Fatalf("redis-cli %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}
