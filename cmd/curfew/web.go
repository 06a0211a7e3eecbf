package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"
)

// web is what people and tools ask over HTTP with credentials: each part has the paths below its
// prefix, the longest that fits winning. (http.ServeMux would redirect "/api/queues/%2F/q", which it
// takes for a path to clean.) Parts are mounted before serve.
type web struct {
	parts map[string]http.Handler
	crowd *crowd
}

func newWeb() *web {
	most, _ := openFiles()
	return &web{make(map[string]http.Handler), newCrowd("HTTP", most.http)}
}

// mount gives a part all paths that are prefix or below it.
func (w *web) mount(prefix string, part http.Handler) { w.parts[prefix] = part }

// ServeHTTP implements http.Handler.
func (w *web) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
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

// The bounds of a request. A slow one may hold a connection, but not for long.
const (
	webHeaderTimeout = 5 * time.Second
	webReadTimeout   = 30 * time.Second
	webWriteTimeout  = 60 * time.Second
	webIdleTimeout   = 60 * time.Second
	webHeaderBytes   = 16 << 10
)

func (w *web) server() *http.Server {
	return w.crowd.bound(&http.Server{
		Handler: w, ReadHeaderTimeout: webHeaderTimeout, ReadTimeout: webReadTimeout, WriteTimeout: webWriteTimeout,
		IdleTimeout: webIdleTimeout, MaxHeaderBytes: webHeaderBytes,
	})
}

const httpShutdown = time.Second

// serveHTTP answers on l until ctx ends; requests under way then have httpShutdown left.
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

// background runs an HTTP server until stop is called, which waits for it; failed is told an error.
func background(ctx context.Context, s *http.Server, l net.Listener, failed func(error)) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := serveHTTP(ctx, s, l); err != nil {
			failed(err)
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}
