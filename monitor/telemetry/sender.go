package telemetry

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/cenkalti/backoff/v5"
	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"
)

const (
	// maxAnswer is how much of an answer is read, in bytes.
	maxAnswer = 64 << 10
	firstWait = 500 * time.Millisecond
	longWait  = 30 * time.Second
)

// sender posts the requests of one signal, one after the other. For one goroutine.
type sender struct {
	Signal
	client *http.Client
	counts counts
	log    *zap.Logger
	zipped *gzip.Writer // nil before the first request
	// partial reads what an answer says of items that were not taken, and why.
	partial func(answer []byte) (rejected int64, why string)

	failing   bool // that requests fail has been logged
	rejecting bool // as has that the collector leaves something out
}

func newSender(s Signal, c counts, partial func([]byte) (int64, string), log *zap.Logger) *sender {
	if s.Timeout == 0 {
		s.Timeout = DefaultTimeout
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if s.RootCAs != nil {
		transport.TLSClientConfig = &tls.Config{RootCAs: s.RootCAs}
	}
	return &sender{Signal: s, counts: c, partial: partial, log: log, client: &http.Client{
		Transport: transport, Timeout: s.Timeout,
		// What the headers authorise is for one address.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// send posts m, which holds so many items. While the collector is away it tries again,
// for up to tryFor or until ctx ends; a request under way then goes on until posting ends.
// What it does not take is counted as dropped.
func (s *sender) send(ctx, posting context.Context, m proto.Message, items int, tryFor time.Duration) {
	body, err := s.encode(m)
	var rejected int64
	if err == nil {
		wait := backoff.NewExponentialBackOff() // its pauses are random by half
		wait.InitialInterval, wait.MaxInterval = firstWait, longWait
		rejected, err = backoff.Retry(ctx, func() (int64, error) { return s.post(posting, body) },
			backoff.WithBackOff(wait), backoff.WithMaxElapsedTime(tryFor))
	}
	if err != nil {
		s.counts.dropped.Add(float64(items))
		return
	}
	rejected = min(max(rejected, 0), int64(items))
	s.counts.dropped.Add(float64(rejected))
	s.counts.exported.Add(float64(int64(items) - rejected))
}

// encode is the body of a request.
func (s *sender) encode(m proto.Message) ([]byte, error) {
	body, err := proto.Marshal(m)
	if err != nil || !s.Gzip {
		return body, s.note(err)
	}
	var b bytes.Buffer
	if s.zipped == nil {
		s.zipped, _ = gzip.NewWriterLevel(&b, gzip.BestSpeed) // a level there is
	} else {
		s.zipped.Reset(&b)
	}
	_, err = s.zipped.Write(body)
	err = errors.Join(err, s.zipped.Close())
	return b.Bytes(), s.note(err)
}

// post posts body once, and returns how many of its items the collector leaves out. An
// error is a backoff.PermanentError when trying again is useless.
func (s *sender) post(ctx context.Context, body []byte) (rejected int64, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL, bytes.NewReader(body))
	if err != nil {
		return 0, backoff.Permanent(s.note(withoutURL(err)))
	}
	if s.Header != nil {
		req.Header = s.Header.Clone()
	}
	req.Header.Set("Content-Type", "application/x-protobuf")
	req.Header.Set("User-Agent", "curfew")
	if s.Gzip {
		req.Header.Set("Content-Encoding", "gzip")
	}
	answer, err := s.client.Do(req)
	if err != nil {
		return 0, s.note(withoutURL(err))
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(answer.Body, maxAnswer)) // also so that the connection can be used again
	if err := judge(answer); err != nil {
		return 0, s.note(err)
	}
	rejected, why := s.partial(text)
	s.noteAnswer(rejected, why)
	return rejected, nil
}

// judge says whether a request was taken, and if not, whether it may be later (OTLP
// 1.x: OTLP/HTTP Response, Failures).
func judge(answer *http.Response) error {
	code := answer.StatusCode
	err := fmt.Errorf("the collector answers %d", code)
	switch code {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
	default:
		if code/100 == 2 {
			return nil
		}
		return backoff.Permanent(err)
	}
	if pause, told := retryAfter(answer.Header.Get("Retry-After"), time.Now()); told {
		return errors.Join(err, &backoff.RetryAfterError{Duration: pause})
	}
	return err
}

// retryAfter reads the header of that name: seconds, or an instant (RFC 9110, 10.2.3).
func retryAfter(text string, now time.Time) (pause time.Duration, ok bool) {
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second, true
	}
	at, err := http.ParseTime(text)
	return max(at.Sub(now), 0), err == nil
}

// note counts and logs a failure, of a series the first, and returns it.
func (s *sender) note(err error) error {
	if err == nil {
		return nil
	}
	s.counts.failures.Inc()
	if !s.failing {
		s.failing = true
		s.log.Warn("the collector does not take telemetry; going on to try", zap.String("collector", s.host()), zap.Error(err))
	}
	return err
}

// noteAnswer logs that the collector takes requests again, and the first of which it
// leaves something out.
func (s *sender) noteAnswer(rejected int64, why string) {
	if s.failing {
		s.failing = false
		s.log.Info("the collector takes telemetry again", zap.String("collector", s.host()))
	}
	if told := rejected > 0 || why != ""; told != s.rejecting {
		s.rejecting = told
		if told {
			s.log.Warn("the collector has something to say of what it is sent", zap.String("collector", s.host()), zap.Int64("rejected", rejected), zap.String("message", why))
		}
	}
}

// host is where the collector is, without what may be secret.
func (s *sender) host() string {
	if u, err := url.Parse(s.URL); err == nil {
		return u.Host
	}
	return ""
}

// withoutURL drops the address from err: it may hold a secret, and errors are logged.
func withoutURL(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}
