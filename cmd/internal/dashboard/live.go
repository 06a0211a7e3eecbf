package dashboard

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"time"

	"curfew/cmd/internal/dashboard/internal/ui"

	"github.com/klauspost/compress/gzip"
	"go.uber.org/zap"
)

const (
	// streamWrite bounds one write to a client.
	streamWrite = 10 * time.Second
	// streamLife is when a stream ends; browsers open another.
	streamLife = time.Hour
	// over makes the browser load the page again.
	over = "event: over\ndata: {}\n\n"
)

// stream sends the live part of a page as it changes, as server-sent events whose data is
// the markup in JSON, compressed for browsers: the overview of 1,000 queues is some 160 kB each time. There can be maxStreams; other clients have to try again later.
func (d *Dashboard) stream(w http.ResponseWriter, r *http.Request, v ui.Visitor, p *ui.Page) {
	select {
	case d.streams <- struct{}{}:
		defer func() { <-d.streams }()
	default:
		w.Header().Set("Retry-After", "30")
		http.Error(w, "too many pages are open", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // proxies
	s := stream{Dashboard: d, page: p, w: w, r: r, control: http.NewResponseController(w)}
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		w.Header().Set("Content-Encoding", "gzip")
		s.w, _ = gzip.NewWriterLevel(w, gzip.StatelessCompression) // no memory for each viewer, and each write is flushed; the level exists
	}
	_ = s.control.SetReadDeadline(time.Time{}) // the deadline of requests would end it
	u := *r.URL
	u.Path = u.Path[len("/live"):]
	s.r = r.Clone(r.Context())
	s.r.URL = &u
	s.run(v)
}

type stream struct {
	*Dashboard
	page    *ui.Page
	w       io.Writer
	r       *http.Request
	control *http.ResponseController
	last    []byte
}

func (s *stream) run(v ui.Visitor) {
	ticks := time.NewTicker(s.Every)
	defer ticks.Stop()
	life := time.NewTimer(streamLife)
	defer life.Stop()
	for {
		if !s.update(v) {
			return
		}
		select {
		case <-ticks.C:
		case <-life.C:
			return
		case <-s.r.Context().Done():
			return
		case <-s.ended:
			return
		}
		var err error
		if v, err = s.visitor(s.r); err != nil {
			s.send(over)
			return
		}
	}
}

// update sends the live part if it has changed, otherwise a comment that keeps the connection alive.
func (s *stream) update(v ui.Visitor) (ok bool) {
	v.Live = true
	content, err := s.page.Build(s.r, v)
	if err != nil {
		s.send(over)
		return false
	}
	text, err := markup(content(s.info(s.page, s.r, v)).Live)
	if err != nil {
		s.log.Error("render", zap.String("page", s.page.Title), zap.Error(err))
		return false
	}
	if bytes.Equal(text, s.last) {
		return s.send(": the same\n\n")
	}
	s.last = text
	var data strings.Builder
	encoder := json.NewEncoder(&data)
	encoder.SetEscapeHTML(false) // it is a third shorter
	if encoder.Encode(string(text)) != nil {
		return false
	}
	return s.send("data: " + data.String() + "\n") // Encode ends the line
}

func (s *stream) send(text string) bool {
	if s.control.SetWriteDeadline(time.Now().Add(streamWrite)) != nil {
		return false
	}
	if _, err := s.w.Write([]byte(text)); err != nil {
		return false
	}
	return s.control.Flush() == nil
}
