package telemetry

import (
	"crypto/x509"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
)

const (
	// DefaultTimeout is how long a collector may take to answer one request.
	DefaultTimeout = 10 * time.Second
	// DefaultMetricInterval is how often metrics are sent.
	DefaultMetricInterval = time.Minute
)

// Options of an Exporter. A signal without URL is not sent.
type Options struct {
	Metrics, Spans Signal
	MetricInterval time.Duration // 0: DefaultMetricInterval
	Sampler        Sampler
	Resource       map[string]string // attributes of this process, among them service.name
	Version        string            // of Curfew
	Gatherer       prometheus.Gatherer
	Registerer     prometheus.Registerer // nil keeps the exporter's own metrics private
	Log            *zap.Logger
}

// Signal is where one kind of telemetry goes, over OTLP/HTTP in protobuf.
type Signal struct {
	URL     string         // http or https, with its path
	Header  http.Header    // of each request, beside its own
	Timeout time.Duration  // of one request; 0: DefaultTimeout
	Gzip    bool           // requests are compressed
	RootCAs *x509.CertPool // whom the collector's certificate is from; nil: the system's
}
