package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"curfew/broker/servicebus/atom"
)

// web serves the API and the dashboard, which take credentials. Each part has the paths below its
// prefix; the longest matching prefix wins. (http.ServeMux would redirect "/api/queues/%2F/q" to a
// cleaned path.) Parts are mounted before it serves.
type web struct {
	parts       map[string]http.Handler
	serviceBus  http.Handler // for the administration clients of Service Bus; nil: there are none
	connections *connLimit
}

func newWeb() *web {
	most, _ := openFiles()
	return &web{parts: make(map[string]http.Handler), connections: newConnLimit("HTTP", most.http)}
}

// ServeHTTP implements http.Handler.
func (w *web) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	if w.serviceBus != nil && atom.Mine(r) {
		w.serviceBus.ServeHTTP(rw, r)
		return
	}
	longest, found := -1, http.NotFoundHandler()
	for prefix, part := range w.parts {
		if len(prefix) > longest && below(r.URL.Path, prefix) {
			longest, found = len(prefix), part
		}
	}
	found.ServeHTTP(rw, r)
}

func below(path, prefix string) bool {
	rest, ok := strings.CutPrefix(path, strings.TrimSuffix(prefix, "/"))
	return ok && (rest == "" || rest[0] == '/')
}

// The limits of a request. A slow client may hold a connection, but not for long.
const (
	webHeaderTimeout = 5 * time.Second
	webReadTimeout   = 30 * time.Second
	webWriteTimeout  = 60 * time.Second
	webIdleTimeout   = 60 * time.Second
	webHeaderBytes   = 16 << 10
)

func (w *web) server() *http.Server {
	return &http.Server{
		Handler: w, ConnState: w.connections.state, ReadHeaderTimeout: webHeaderTimeout, ReadTimeout: webReadTimeout, WriteTimeout: webWriteTimeout,
		IdleTimeout: webIdleTimeout, MaxHeaderBytes: webHeaderBytes,
	}
}

const httpShutdown = time.Second

// serveHTTP serves on l until ctx ends. Running requests then have httpShutdown to finish.
func serveHTTP(ctx context.Context, s *http.Server, l net.Listener) error {
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ended)
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), httpShutdown)
		defer cancel()
		if s.Shutdown(grace) != nil {
			s.Close()
		}
	})
	err := s.Serve(l)
	if !stop() {
		<-ended
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("HTTP on %s: %w", l.Addr(), err)
}

// background runs an HTTP server until stop is called, which waits for the end. failed gets an error.
func background(ctx context.Context, s *http.Server, l net.Listener, failed func(error)) (stop func()) {
	return runInBackground(ctx, func(ctx context.Context) error {
		if err := serveHTTP(ctx, s, l); err != nil {
			failed(err)
		}
		return nil
	})
}
