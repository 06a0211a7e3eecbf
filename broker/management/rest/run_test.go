package rest_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/access"
	"curfew/broker/deadletters"
	"curfew/broker/management/rest"
	"curfew/broker/operate"
)

// pipes is a listener whose connections are pipes, on which time may be virtual.
type pipes struct{ taken chan net.Conn }

func (l pipes) Accept() (net.Conn, error) {
	c, ok := <-l.taken
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}
func (l pipes) Close() error   { return nil }
func (l pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (l pipes) dial(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	l.taken <- server
	return client, nil
}

// longDesk serves one route, whose run takes ten minutes, with the limits of time that other requests have.
type longDesk struct {
	t      *testing.T
	ops    *operate.Operations
	client *http.Client
	worked atomic.Int32 // runs that went on to their end
}

func newLongDesk(t *testing.T) *longDesk {
	b, err := broker.New(broker.Options{})
	require.NoError(t, err)
	for _, name := range []string{"one", "other"} {
		u := access.User{Name: name, Tags: []string{access.Management}}
		u.SetPassword("p")
		require.NoError(t, b.Accounts.PutUser(u))
	}
	d := &longDesk{t: t, ops: operate.New(operate.Options{Broker: b})}
	long := rest.Route{Method: http.MethodPost, Path: "/api/long", Need: operate.Management, Handle: func(r *rest.Request) error {
		return r.Run(operate.ImportDefinitions, operate.QueueName{VHost: "/"}, func(ctx context.Context) (any, error) {
			select {
			case <-time.After(10 * time.Minute):
				d.worked.Add(1)
				return rest.Object{"deleted": 7}, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}, r.Answer)
	}}
	rows := rest.Route{Method: http.MethodGet, Path: "/api/rows", Need: operate.Management, Handle: func(r *rest.Request) error {
		return r.Rows(5000, func(i int) rest.Object { return rest.Object{"row": i, "text": strings.Repeat("x", 100)} })
	}}
	upload := rest.Route{Method: http.MethodPost, Path: "/api/upload", Need: operate.Management, Handle: func(r *rest.Request) error {
		body := r.Upload()
		return r.Run("import_dead_letters", operate.QueueName{VHost: "/"}, func(ctx context.Context) (any, error) {
			n, err := io.Copy(io.Discard, body(ctx))
			return rest.Object{"read": n}, err
		}, r.Answer)
	}}
	l := pipes{make(chan net.Conn)}
	s := &http.Server{Handler: rest.New(rest.Options{Broker: b, Operations: d.ops}, []rest.Route{long, upload, rows}).Handler(), ReadTimeout: 30 * time.Second, WriteTimeout: time.Minute}
	go s.Serve(l)
	transport := &http.Transport{DialContext: l.dial}
	d.client = &http.Client{Transport: transport}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		d.ops.Close()
		close(l.taken)
		s.Close()
		assert.NoError(t, b.Close())
	})
	return d
}

func (d *longDesk) post(ctx context.Context, prefer string) (*http.Response, map[string]any, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://curfew/api/long", http.NoBody)
	require.NoError(d.t, err)
	req.SetBasicAuth("one", "p")
	if prefer != "" {
		req.Header.Set("Prefer", prefer)
	}
	answer, err := d.client.Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	require.NoError(d.t, err)
	var object map[string]any
	require.NoError(d.t, json.Unmarshal(body, &object), "%s", body)
	return answer, object, nil
}

func (d *longDesk) runs(user string) []operate.Run {
	list, err := operate.ListRuns.Do(d.t.Context(), d.ops, operate.Actor{Name: user, Tags: []string{access.Management}}, operate.None{})
	require.NoError(d.t, err)
	return list
}

// TestALongRequestIsAnswered: the limits of time of other requests do not cut it off.
func TestALongRequestIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newLongDesk(t)
		start := time.Now()
		answer, body, err := d.post(t.Context(), "")
		require.NoError(t, err)
		assert.Equal(t, http.StatusOK, answer.StatusCode)
		assert.Equal(t, map[string]any{"deleted": 7.0}, body)
		assert.Equal(t, 10*time.Minute, time.Since(start))
		assert.Equal(t, deadletters.Done, d.runs("one")[0].State)
	})
}

// TestALongListIsReadSlowly: the limit of time of other answers does not cut it off.
func TestALongListIsReadSlowly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newLongDesk(t)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://curfew/api/rows", http.NoBody)
		require.NoError(t, err)
		req.SetBasicAuth("one", "p")
		answer, err := d.client.Do(req)
		require.NoError(t, err)
		defer answer.Body.Close()
		time.Sleep(10 * time.Minute)
		var list []any
		require.NoError(t, json.NewDecoder(answer.Body).Decode(&list))
		assert.Len(t, list, 5000)
	})
}

// TestNothingIsDoneForAClientThatIsGone: when the client gives up, so does its run.
func TestNothingIsDoneForAClientThatIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newLongDesk(t)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		_, _, err := d.post(ctx, "")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		synctest.Wait()
		run := d.runs("one")[0]
		assert.Equal(t, deadletters.Cancelled, run.State)
		assert.Equal(t, 5*time.Minute, run.Ended.Sub(run.Started))
		time.Sleep(time.Hour)
		assert.Zero(t, d.worked.Load())
	})
}

// TestALongRequestGoesOnAsARun: a client that prefers not to wait gets 202 with the run, and finds its result there.
func TestALongRequestGoesOnAsARun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newLongDesk(t)
		start := time.Now()
		answer, body, err := d.post(t.Context(), "respond-async, wait=5")
		require.NoError(t, err)
		assert.Equal(t, http.StatusAccepted, answer.StatusCode)
		assert.Equal(t, 5*time.Second, time.Since(start))
		assert.Equal(t, "respond-async", answer.Header.Get("Preference-Applied"))
		assert.Equal(t, rest.RunsPath+"/"+body["id"].(string), answer.Header.Get("Location"))
		assert.Equal(t, "running", body["state"])
		assert.Empty(t, d.runs("other"), "it is another user's")
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		run := d.runs("one")[0]
		assert.Equal(t, deadletters.Done, run.State)
		assert.Equal(t, map[string]any{"deleted": 7}, run.Result)

		_, body, err = d.post(t.Context(), "respond-async")
		require.NoError(t, err)
		_, err = operate.CancelRun.Do(t.Context(), d.ops, operate.Actor{Name: "other", Tags: []string{access.Management}}, operate.RunName{ID: body["id"].(string)})
		require.ErrorIs(t, err, operate.ErrNotFound)
		run, err = operate.CancelRun.Do(t.Context(), d.ops, operate.Actor{Name: "one", Tags: []string{access.Management}}, operate.RunName{ID: body["id"].(string)})
		require.NoError(t, err)
		assert.Equal(t, deadletters.Cancelled, run.State)
		assert.Equal(t, int32(1), d.worked.Load())
	})
}

// TestTooManyRuns: a request beyond the bound is refused, and none of those that run is disturbed.
func TestTooManyRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newLongDesk(t)
		for range 100 {
			answer, _, err := d.post(t.Context(), "respond-async")
			require.NoError(t, err)
			require.Equal(t, http.StatusAccepted, answer.StatusCode)
		}
		answer, _, err := d.post(t.Context(), "respond-async")
		require.NoError(t, err)
		assert.Equal(t, http.StatusServiceUnavailable, answer.StatusCode)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		assert.Equal(t, int32(100), d.worked.Load())
		answer, _, err = d.post(t.Context(), "")
		require.NoError(t, err)
		assert.Equal(t, http.StatusOK, answer.StatusCode)
		assert.Len(t, d.runs("one"), 100, "the oldest is forgotten")
	})
}

// TestAStalledUploadEnds: a client that stops in the middle of its body is waited for a few minutes, and until its run is cancelled.
func TestAStalledUploadEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newLongDesk(t)
		begin := func() (client *io.PipeWriter, status chan int) {
			body, client := io.Pipe()
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://curfew/api/upload", body)
			require.NoError(t, err)
			req.SetBasicAuth("one", "p")
			status = make(chan int, 1)
			go func() {
				answer, err := d.client.Do(req)
				if err != nil {
					status <- 0
					return
				}
				answer.Body.Close()
				status <- answer.StatusCode
			}()
			for range 3 {
				client.Write([]byte("{}\n"))
				time.Sleep(4 * time.Minute)
			}
			return client, status
		}
		client, status := begin()
		client.Close()
		assert.Equal(t, http.StatusOK, <-status)

		client, status = begin()
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		run := d.runs("one")[0]
		assert.Equal(t, deadletters.Failed, run.State)
		assert.EqualError(t, run.Failure.Err, "bad_request: nothing more of the body came for 5m0s")
		client.Close()
		<-status

		client, status = begin()
		run = d.runs("one")[0]
		require.Equal(t, deadletters.Running, run.State)
		run, err := operate.CancelRun.Do(t.Context(), d.ops, operate.Actor{Name: "one", Tags: []string{access.Management}}, operate.RunName{ID: run.ID})
		require.NoError(t, err)
		assert.Equal(t, deadletters.Cancelled, run.State)
		client.Close()
		<-status
	})
}
