package management

import (
	"cmp"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"curfew/broker/management/rest"
	"curfew/broker/memory"
	"curfew/broker/operate"
	"curfew/broker/server"
)

func listNodes(r *request) error {
	r.api.rates.Refresh()
	return r.List([]object{r.api.node()})
}

// isNode accepts the node's own name, and rabbit@ with the name of the instance or the machine,
// whole or up to the first dot: monitoring plugins build the name of a node in this way.
func (a *API) isNode(name string) bool {
	host, made := strings.CutPrefix(name, "rabbit@")
	if !made {
		return name == a.Node
	}
	_, instance, _ := strings.Cut(a.Node, "@")
	machine, _ := os.Hostname()
	return slices.ContainsFunc([]string{instance, machine}, func(whole string) bool {
		short, _, _ := strings.Cut(whole, ".")
		return host != "" && (strings.EqualFold(host, whole) || strings.EqualFold(host, short))
	})
}

func getNode(r *request) error {
	r.api.rates.Refresh()
	o := r.api.node()
	if r.HTTP.URL.Query().Get("memory") == "true" {
		o["memory"] = r.api.memoryObject()
	}
	return r.One(o)
}

// nodeMemoryRelative answers with the breakdown in percent of the resident memory. A part that
// is not empty counts as at least one percent.
func nodeMemoryRelative(r *request) error {
	o, total := object{"total": 100}, float64(max(1, r.api.b.Alarm.MemoryInUse()))
	for name, v := range r.api.memoryObject() {
		n, counted := rest.Number(v)
		if !counted {
			continue
		}
		percent := int(math.Round(100 * n / total))
		if n > 0 {
			percent = max(1, percent)
		}
		o[name] = percent
	}
	return r.One(object{"memory": o})
}

// memoryObject returns the breakdown that a Go process can give; RabbitMQ's other categories
// belong to another runtime.
func (a *API) memoryObject() object {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	rss := a.b.Alarm.MemoryInUse()
	o := zeros(
		"connection_readers", "connection_writers", "connection_channels", "connection_other", "queue_procs", "queue_slave_procs",
		"quorum_queue_procs", "quorum_queue_dlx_procs", "stream_queue_procs", "stream_queue_replica_reader_procs", "stream_queue_coordinator_procs",
		"plugins", "metrics", "mgmt_db", "mnesia", "quorum_ets", "other_ets", "binary", "msg_index", "code", "atom", "metadata_store",
		"metadata_store_ets",
	)
	o["other_proc"], o["other_system"] = m.HeapInuse, m.StackInuse+m.MSpanInuse+m.MCacheInuse+m.GCSys
	o["allocated_unused"], o["reserved_unallocated"] = m.HeapIdle-m.HeapReleased, 0
	o["strategy"] = "rss"
	o["total"] = object{"erlang": m.HeapInuse, "rss": rss, "allocated": m.Sys - m.HeapReleased}
	return o
}

// node returns this process in the form of a RabbitMQ node.
func (a *API) node() object {
	memory, disk := a.b.Alarm.Low()
	free, limit := a.disk()
	used, most := descriptors()
	conns := a.Server.Connections()
	o := object{
		"name": a.Node, "type": "disc", "running": true, "being_drained": false, "rates_mode": "basic",
		"os_pid": strconv.Itoa(os.Getpid()), "processors": runtime.NumCPU(), "run_queue": 0,
		"uptime":   min(a.Now().Sub(a.started).Milliseconds(), math.MaxUint32), // strict clients have 32 bits for it: that is 49 days
		"mem_used": a.b.Alarm.MemoryInUse(), "mem_limit": a.memoryLimit(), "mem_alarm": memory, "mem_calculation_strategy": "rss",
		"disk_free": free, "disk_free_limit": limit, "disk_free_alarm": disk,
		"fd_used": used, "fd_total": most, "sockets_used": conns, "sockets_total": most,
		"proc_used": runtime.NumGoroutine(), "proc_total": 1048576,
		"exchange_types": exchangeTypes(), "contexts": a.contexts(),
		"auth_mechanisms": []object{
			{"name": "PLAIN", "description": "SASL PLAIN authentication mechanism", "enabled": true},
			{"name": "AMQPLAIN", "description": "QPid AMQPLAIN mechanism", "enabled": true},
		},
		"applications": []object{
			{"name": "curfew", "description": "Curfew", "version": a.Version},
			{"name": "rabbit", "description": "RabbitMQ, whose version Curfew reports", "version": server.RabbitMQVersion},
		},
		"enabled_plugins": []string{"rabbitmq_management", "rabbitmq_prometheus"}, "partitions": []any{}, "cluster_links": []any{},
		"log_files": []string{"<stderr>"}, "config_files": []any{}, "db_dir": a.DataDir, "net_ticktime": 60,
		"metrics_gc_queue_length": zeros("connection_closed", "channel_closed", "consumer_deleted", "exchange_deleted", "queue_deleted", "vhost_deleted",
			"node_node_deleted", "channel_consumer_deleted"),
		"ra_open_file_metrics": zeros("ra_log_wal", "ra_log_segment_writer"),
	}
	for name, v := range a.counts(a.Operations.Churn(), operate.ChurnKey{}) {
		o[name] = v
	}
	a.quiet(o)
	return o
}

// quiet adds the numbers that this broker does not keep, or that never change.
func (a *API) quiet(o object) {
	for _, name := range []string{
		"gc_num", "gc_bytes_reclaimed", "context_switches", "io_read_count", "io_read_bytes", "io_read_avg_time", "io_write_count", "io_write_bytes",
		"io_write_avg_time", "io_sync_count", "io_sync_avg_time", "io_seek_count", "io_seek_avg_time", "io_reopen_count", "mnesia_ram_tx_count",
		"mnesia_disk_tx_count", "msg_store_read_count", "msg_store_write_count", "queue_index_write_count", "queue_index_read_count",
	} {
		o[name], o[name+"_details"] = 0, object{"rate": rest.Rate(0)}
	}
	for _, name := range []string{"mem_used", "fd_used", "sockets_used", "proc_used", "disk_free"} {
		o[name+"_details"] = object{"rate": rest.Rate(0)}
	}
}

func zeros(names ...string) object {
	o := object{}
	for _, name := range names {
		o[name] = 0
	}
	return o
}

// memoryLimit returns the limit of the memory alarm, or a number that is never reached.
func (a *API) memoryLimit() int64 {
	if n := a.b.Alarm.MemoryLimit; n > 0 {
		return n
	}
	return 1 << 40
}

// disk returns the free space where messages are kept, and the limit in force, in bytes.
func (a *API) disk() (free, limit int64) {
	if free, limit = a.b.Alarm.Disk(); free >= 0 {
		return free, limit
	}
	free, _, _ = memory.DiskSpace(cmp.Or(a.DataDir, ".")) // 0 with an error
	return free, a.DiskFreeLimit
}

// descriptors returns how many files are open, and how many may be.
func descriptors() (used, most int) {
	most = memory.FilesLimit()
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0, most
	}
	return len(open), most
}
