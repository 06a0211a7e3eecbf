package telemetry

import (
	"context"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	tracecollector "go.opentelemetry.io/proto/slim/otlp/collector/trace/v1"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	"google.golang.org/protobuf/proto"
)

// spansOnly sends no metrics.
var spansOnly = Options{Spans: Signal{URL: "http://c:4318/v1/traces"}}

func refusing(codes ...int) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, _ *http.Request) bool {
		if len(codes) == 0 {
			return false
		}
		w.WriteHeader(codes[0])
		codes = codes[1:]
		return true
	}
}

func TestABusyCollectorIsAskedAgain(t *testing.T) {
	inBubble(t, spansOnly, func(t *testing.T, x *bench) {
		x.answer = refusing(503, 429, 502, 504)
		x.Add([]Expiry{late()})
		time.Sleep(sendAfter + spansTryFor)
		synctest.Wait()
		assert.Len(t, x.allSpans(), 1)
		assert.Equal(t, 5, x.requests())
		for i := range x.tried[1:] {
			assert.GreaterOrEqual(t, x.tried[i+1].Sub(x.tried[i]), firstWait/2, "with pauses")
		}
		assert.Equal(t, []int{1, 0, 4}, []int{x.count(x.spansSender(), exportedOf), x.count(x.spansSender(), droppedOf), x.count(x.spansSender(), failuresOf)})
	})
}

func (x *bench) spansSender() *sender { return x.Exporter.spans }

func TestTheCollectorSaysWhenToAskAgain(t *testing.T) {
	for name, header := range map[string]func() string{
		"seconds": func() string { return "30" },
		"instant": func() string { return time.Now().Add(30 * time.Second).UTC().Format(http.TimeFormat) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, spansOnly, func(t *testing.T, x *bench) {
				x.answer = func(w http.ResponseWriter, _ *http.Request) bool {
					if len(x.tried) > 1 {
						return false
					}
					w.Header().Set("Retry-After", header())
					w.WriteHeader(503)
					return true
				}
				x.Add([]Expiry{late()})
				time.Sleep(sendAfter + 31*time.Second)
				synctest.Wait()
				require.Equal(t, 2, x.requests())
				assert.Equal(t, 30*time.Second, x.tried[1].Sub(x.tried[0]))
			})
		})
	}
}

// A collector that wants to be left alone for ever loses what is sent meanwhile, not what comes later.
func TestNobodyWaitsForEver(t *testing.T) {
	inBubble(t, spansOnly, func(t *testing.T, x *bench) {
		x.answer = func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Retry-After", "2000000000")
			w.WriteHeader(503)
			return true
		}
		x.Add([]Expiry{late()})
		time.Sleep(sendAfter)
		synctest.Wait()
		assert.Equal(t, 1, x.count(x.spansSender(), droppedOf))
		x.answer = nil
		x.Add([]Expiry{late()})
		time.Sleep(sendAfter)
		synctest.Wait()
		assert.Len(t, x.allSpans(), 1)
	})
}

func TestARefusalIsFinal(t *testing.T) {
	for _, code := range []int{301, 400, 401, 404, 413, 500} {
		inBubble(t, spansOnly, func(t *testing.T, x *bench) {
			x.answer = refusing(code)
			x.Add([]Expiry{late(), late()})
			time.Sleep(sendAfter + spansTryFor)
			synctest.Wait()
			assert.Equal(t, 1, x.requests(), code)
			assert.Equal(t, 2, x.count(x.spansSender(), droppedOf))
			x.Add([]Expiry{late()})
			time.Sleep(sendAfter)
			synctest.Wait()
			assert.Len(t, x.allSpans(), 1, "the next is another's case")
		})
	}
}

// While it refuses, a storm is tried once a second, not as fast as it comes.
func TestAStormIsNotThrownAtACollectorThatRefuses(t *testing.T) {
	inBubble(t, spansOnly, func(t *testing.T, x *bench) {
		x.answer = func(w http.ResponseWriter, _ *http.Request) bool {
			w.WriteHeader(401)
			return true
		}
		for range 60 {
			x.Add(slices.Repeat([]Expiry{late()}, 200))
			time.Sleep(10 * time.Millisecond)
		}
		synctest.Wait()
		assert.LessOrEqual(t, x.requests(), 4, "in 0.6 seconds")
		x.stop()
		assert.Equal(t, 12_000, x.count(x.spansSender(), droppedOf))
	})
}

func TestACollectorThatIsAwayComesBack(t *testing.T) {
	core, logs := observer.New(zapcore.InfoLevel)
	o := spansOnly
	o.Log = zap.New(core)
	inBubble(t, o, func(t *testing.T, x *bench) {
		away := x.spansSender().client.Transport
		x.spansSender().client.Transport = roundTrip(func(*http.Request) (*http.Response, error) { return nil, errors.New("connection refused") })
		x.Add([]Expiry{late()})
		time.Sleep(sendAfter + 2*spansTryFor)
		synctest.Wait()
		assert.Equal(t, 1, x.count(x.spansSender(), droppedOf), "it was tried for a minute")
		assert.Greater(t, x.count(x.spansSender(), failuresOf), 3)
		x.spansSender().client.Transport = away
		x.Add([]Expiry{late()})
		time.Sleep(sendAfter)
		synctest.Wait()
		assert.Len(t, x.allSpans(), 1)
		x.stop()
	})
	assert.Equal(t, 1, logs.FilterMessageSnippet("does not take telemetry").Len(), "of many failures one is told")
	assert.Equal(t, 1, logs.FilterMessageSnippet("takes telemetry again").Len())
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestPartialSuccess(t *testing.T) {
	core, logs := observer.New(zapcore.InfoLevel)
	o := spansOnly
	o.Log = zap.New(core)
	inBubble(t, o, func(t *testing.T, x *bench) {
		x.answer = func(w http.ResponseWriter, _ *http.Request) bool {
			answer, err := proto.Marshal(&tracecollector.ExportTraceServiceResponse{PartialSuccess: &tracecollector.ExportTracePartialSuccess{
				RejectedSpans: 2, ErrorMessage: "too old",
			}})
			assert.NoError(t, err)
			_, _ = w.Write(answer)
			return true
		}
		for range 2 {
			x.Add([]Expiry{late(), late(), late()})
			time.Sleep(sendAfter)
			synctest.Wait()
		}
		assert.Equal(t, []int{2, 4}, []int{x.count(x.spansSender(), exportedOf), x.count(x.spansSender(), droppedOf)})
		x.answer = func(w http.ResponseWriter, _ *http.Request) bool {
			_, _ = io.WriteString(w, "<html>no protobuf")
			return true
		}
		x.Add([]Expiry{late()})
		time.Sleep(sendAfter)
		synctest.Wait()
		assert.Equal(t, 3, x.count(x.spansSender(), exportedOf), "200 is 200")
	})
	told := logs.FilterMessageSnippet("has something to say").All()
	require.Len(t, told, 1)
	assert.Equal(t, "too old", told[0].ContextMap()["message"])
}

// What is left when the exporter is to end is sent, and a collector that hangs does not hold that up.
func TestTheEnd(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, x *bench) {
		x.Add([]Expiry{late()})
		x.stop()
		assert.Len(t, x.allSpans(), 1)
		assert.Len(t, x.collector.metrics, 1)
	})
	inBubble(t, Options{}, func(t *testing.T, x *bench) {
		x.answer = func(_ http.ResponseWriter, r *http.Request) bool {
			<-r.Context().Done()
			return true
		}
		x.Add(slices.Repeat([]Expiry{late()}, maxWaiting))
		before := time.Now()
		x.stop()
		assert.Equal(t, endLimit, time.Since(before))
		assert.Equal(t, maxWaiting, x.count(x.spansSender(), droppedOf))
	})
}

func TestARequestHasItsTime(t *testing.T) {
	o := spansOnly
	o.Spans.Timeout = 3 * time.Second
	inBubble(t, o, func(t *testing.T, x *bench) {
		x.answer = func(_ http.ResponseWriter, r *http.Request) bool {
			if len(x.tried) == 1 {
				<-r.Context().Done()
			}
			return false
		}
		x.Add([]Expiry{late()})
		time.Sleep(sendAfter + 5*time.Second)
		synctest.Wait()
		require.Equal(t, 2, x.requests())
		assert.GreaterOrEqual(t, x.tried[1].Sub(x.tried[0]), 3*time.Second)
	})
}

// Over real sockets: TLS with an authority of one's own, headers, compression.
func TestOverTLS(t *testing.T) {
	c := &collector{t: t}
	server := httptest.NewTLSServer(c)
	defer server.Close()
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	registry := prometheus.NewRegistry()
	signal := func(path string) Signal {
		return Signal{URL: server.URL + path, Gzip: true, Timeout: time.Minute, RootCAs: roots, Header: http.Header{"Authorization": {"Bearer s3cret"}, "X-Tenant": {"a b"}}}
	}
	x, err := New(Options{
		Metrics: signal("/v1/metrics"), Spans: signal("/v1/traces"), MetricInterval: 100 * time.Millisecond, Gatherer: registry, Registerer: registry,
	})
	require.NoError(t, err)
	x.Add(slices.Repeat([]Expiry{late()}, maxBatch+1))
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- x.Run(ctx) }()
	require.Eventually(t, func() bool { return len(c.allSpans()) > maxBatch && c.metricRequests() > 0 }, time.Minute, 10*time.Millisecond)
	end()
	require.NoError(t, <-ended)
	assert.Len(t, c.allSpans(), maxBatch+1)
	assert.Equal(t, []string{"Bearer s3cret", "a b", "gzip", "curfew"},
		[]string{c.header.Get("Authorization"), c.header.Get("X-Tenant"), c.header.Get("Content-Encoding"), c.header.Get("User-Agent")})
}

// Headers are for the address they were given for, and a certificate has to be from somebody.
func TestWhereHeadersDoNotGo(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the redirect is followed") }))
	defer other.Close()
	from := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer from.Close()
	secure := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("anybody's certificate is taken") }))
	secure.Config.ErrorLog = log.New(io.Discard, "", 0) // which has its opinion of the handshake
	secure.StartTLS()
	defer secure.Close()
	for _, url := range []string{from.URL, secure.URL, "http://ann:s3cret@" + refusedAddress(t)} {
		core, logs := observer.New(zapcore.InfoLevel)
		x, err := New(Options{Spans: Signal{URL: url}, Log: zap.New(core)})
		require.NoError(t, err)
		x.Add([]Expiry{late()})
		ctx, end := context.WithCancel(t.Context())
		end()
		require.NoError(t, x.Run(ctx))
		assert.Equal(t, 1.0, testutil.ToFloat64(x.spans.counts.dropped))
		for _, line := range logs.All() {
			assert.False(t, strings.Contains(line.Message, "s3cret"))
			for _, field := range line.ContextMap() {
				assert.NotContains(t, field, "s3cret")
			}
		}
	}
}

// refusedAddress is one where nobody listens.
func refusedAddress(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	return l.Addr().String()
}

func TestOwnMetricsAreRegisteredOnce(t *testing.T) {
	registry := prometheus.NewRegistry()
	_, err := New(Options{Registerer: registry})
	require.NoError(t, err)
	_, err = New(Options{Registerer: registry})
	assert.ErrorContains(t, err, "telemetry: register metric")
}
