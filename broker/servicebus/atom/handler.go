package atom

import (
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/operate"
	"curfew/broker/operate/admin"
	"curfew/broker/policy"
	"curfew/broker/servicebus"
)

// Handler is the administration API. All fields are required.
type Handler struct {
	Operations *operate.Operations
	Options    servicebus.Options
}

// Mine reports whether a request comes from an administration client.
func Mine(r *http.Request) bool {
	token := r.Header.Get("Authorization") // without a scheme, unless it is a signature
	return token != "" && !strings.HasPrefix(token, "Basic ") && r.URL.Query().Has("api-version")
}

const (
	maxBody       = 64 << 10
	maxSize       = 1024 // MaxSizeInMegabytes: Azure's default
	subscriptions = "/subscriptions/"
	vhostName     = "/"
)

// call is one request.
type call struct {
	*Handler
	w     http.ResponseWriter
	r     *http.Request
	vh    *broker.VHost
	actor operate.Actor

	ofTopics map[string][]*broker.Queue // the subscriptions of each topic; nil: not asked for yet
	delayed  map[string]int             // how many messages are scheduled for each queue; nil: not asked for yet
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	peer, _ := netip.ParseAddrPort(r.RemoteAddr)
	local := peer.Addr().Unmap().IsLoopback() && r.Header.Get("X-Forwarded-For") == "" && r.Header.Get("Forwarded") == "" && h.Options.Named(r.Host) // not by a proxy or a web page
	claims, _, err := h.Options.Check(r.Header.Get("Authorization"), "https://"+r.Host+r.URL.Path, local, time.Now())
	if err != nil && h.Options.Emulator && !h.Options.Named(r.Host) {
		err = fmt.Errorf("without one of its keys, this machine is called localhost, not %q: %w", r.Host, err)
	}
	if strings.Contains(r.URL.Path, "?") { // an address ends there, and so would what a token is for
		err = errors.New("a name has a question mark")
	}
	if err != nil {
		refuse(w, http.StatusUnauthorized, err)
		return
	}
	vh, ok := h.Operations.Broker.VHost(vhostName)
	user, known := h.Operations.Broker.Accounts.User(h.Options.User)
	if !ok || !known {
		refuse(w, http.StatusNotFound, errors.New("the virtual host / or the user of Service Bus's clients does not exist"))
		return
	}
	c := call{Handler: h, w: w, r: r, vh: vh, actor: operate.Actor{Name: user.Name, Tags: user.Tags, Face: operate.API}}
	path := strings.Trim(r.URL.Path, "/")
	rules, rule, ofRules := cutRules(path)
	switch list := strings.ToLower(path); {
	case claims&servicebus.Manage == 0:
		c.deny(path)
	case ofRules:
		c.rules(rules, rule)
	case r.Method == http.MethodGet && list == "$resources/queues":
		listed(&c, c.queues(), c.queue)
	case r.Method == http.MethodGet && list == "$namespaceinfo":
		name, _, _ := strings.Cut(r.Host, ":")
		write(w, http.StatusOK, entry[namespaceInfo]{ID: idBase + "$namespaceinfo", Title: name, Content: content[namespaceInfo]{"application/xml", namespaceInfo{
			XMLName: xml.Name{Space: busSpace, Local: "NamespaceInfo"}, Name: name, NamespaceType: "Messaging", MessagingSKU: "Standard", CreatedTime: zeroTime, ModifiedTime: zeroTime,
		}}})
	case r.Method == http.MethodGet && list == "$resources/topics":
		builtIn := func(x broker.ExchangeInfo) bool { return x.Name == "" || strings.HasPrefix(x.Name, "amq.") }
		listed(&c, slices.DeleteFunc(c.vh.Exchanges.List(), builtIn), c.topic)
	case r.Method == http.MethodGet && strings.HasSuffix(list+"/", subscriptions):
		listed(&c, c.subscriptions(path[:len(path)+1-len(subscriptions)]), c.queue)
	case r.Method == http.MethodGet:
		c.get(path)
	case r.Method == http.MethodPut:
		c.put(path)
	case r.Method == http.MethodDelete:
		c.delete(path)
	default:
		refuse(w, http.StatusMethodNotAllowed, errors.New("the method is not known"))
	}
}

func refuse(w http.ResponseWriter, status int, err error) {
	if e, ok := errors.AsType[*amqp.Exception](err); ok && e.Code == amqp.AccessRefused {
		status = http.StatusUnauthorized
	}
	write(w, status, problem{Code: status, Detail: err.Error()})
}

func queueName(topic, subscription string) string { return topic + "/Subscriptions/" + subscription }

// listed answers with a page of entries. Only those of the page are made.
func listed[T, E any](c *call, all []T, show func(T) E) {
	query := c.r.URL.Query()
	skip, _ := strconv.Atoi(query.Get("$skip"))
	top, err := strconv.Atoi(query.Get("$top"))
	if err != nil || top <= 0 {
		top = 100
	}
	all = all[min(max(skip, 0), len(all)):]
	var page []E
	for _, one := range all[:min(top, len(all))] {
		page = append(page, show(one))
	}
	title := strings.Trim(c.r.URL.Path, "/")
	write(c.w, http.StatusOK, feed{ID: title, Title: title, Updated: zeroTime, Entries: page})
}

func (c *call) queues() (all []*broker.Queue) {
	for _, q := range c.vh.Queues.List() {
		name := q.Name
		if !policy.IsSubqueue(name) && !strings.HasSuffix(name, policy.DeferredSuffix) && !strings.Contains(strings.ToLower(name), subscriptions) {
			all = append(all, q)
		}
	}
	return all
}

// subscriptions are those of a topic. All queues are looked at once in a request.
func (c *call) subscriptions(topic string) []*broker.Queue {
	if c.ofTopics == nil {
		c.ofTopics = map[string][]*broker.Queue{}
		for _, q := range c.vh.Queues.List() {
			if of, name := servicebus.Split(q.Name); name != "" && !policy.IsSubqueue(name) && !strings.HasSuffix(name, policy.DeferredSuffix) {
				c.ofTopics[of] = append(c.ofTopics[of], q)
			}
		}
	}
	return c.ofTopics[topic]
}

func (c *call) topic(x broker.ExchangeInfo) entry[entity] {
	e := entity{XMLName: xml.Name{Space: busSpace, Local: "TopicDescription"}, MaxSizeInMegabytes: maxSize, RequiresDuplicateDetection: new(bool), SizeInBytes: new(int64)}
	e.settings(x.Args)
	n := len(c.subscriptions(x.Name))
	e.SubscriptionCount = &n
	e.CountDetails = &counts{Space: countSpace, ScheduledMessageCount: c.vh.DelayedFor(x.Name)}
	return newEntry(x.Name, e)
}

func (c *call) queue(q *broker.Queue) entry[entity] {
	i, kind := q.Info(), "QueueDescription"
	if _, subscription := servicebus.Split(q.Name); subscription != "" {
		kind = "SubscriptionDescription"
	}
	e := entity{XMLName: xml.Name{Space: busSpace, Local: kind}, RequiresSession: new(bool), LockDuration: duration(i.Args["x-lock-duration"], "PT0S")}
	e.settings(i.Args)
	e.AccessedAt = instant(c.Operations.Broker.UnixMillis(q.Messages.Idle.LastUse(c.Operations.Broker.Now())))
	if n, given := amqp.Integer(i.Args["x-max-delivery-count"]); given {
		e.MaxDeliveryCount = &n
	}
	drops := i.Args[policy.DeadLetterExpiredArg] == false
	e.DeadLetteringOnMessageExpiration = new(bool)
	*e.DeadLetteringOnMessageExpiration = !drops
	size := i.ReadyBytes + i.UnackedBytes
	n := counts{Space: countSpace, ActiveMessageCount: i.Ready + i.Unacked}
	if dead, err := c.vh.Queues.Get(q.Name + policy.SubqueueSuffix); err == nil {
		ready, unacked, _ := dead.Messages.Counts()
		n.DeadLetterMessageCount = ready + unacked
	}
	if kind == "QueueDescription" {
		e.MaxSizeInMegabytes, e.RequiresDuplicateDetection, e.SizeInBytes = maxSize, new(bool), &size
		n.ScheduledMessageCount = c.scheduled(q.Name)
	} else {
		e.EnablePartitioning = nil // its topic has that
	}
	total := int64(n.ActiveMessageCount + n.DeadLetterMessageCount + n.ScheduledMessageCount)
	e.MessageCount, e.CountDetails = &total, &n
	return newEntry(q.Name, e)
}

// scheduled counts the messages that are scheduled for a queue. All of them are looked at once in a request.
func (c *call) scheduled(queue string) int {
	if c.delayed == nil {
		c.delayed = map[string]int{}
		for next, more := uint64(0), true; more; more = next != 0 {
			var page []broker.DelayedMessage
			page, next = c.vh.Delayed(next, 1000)
			for i := range page {
				if page[i].Exchange == "" {
					c.delayed[page[i].RoutingKey]++
				}
			}
		}
	}
	return c.delayed[queue]
}

// isPart reports whether a path would be that of the deferred messages of an entity.
func isPart(path string) bool {
	return strings.HasSuffix(strings.ToLower(path), servicebus.DeferredSuffix)
}

// find returns an entity as an entry.
func (c *call) find(path string) (entry[entity], bool) {
	if isPart(path) {
		return entry[entity]{}, false
	}
	topic, subscription := servicebus.Split(path)
	if subscription != "" {
		q, err := c.vh.Queues.Get(queueName(topic, subscription))
		if err != nil {
			return entry[entity]{}, false
		}
		return c.queue(q), true
	}
	if q, err := c.vh.Queues.Get(path); err == nil {
		return c.queue(q), true
	}
	if x, err := c.vh.Exchanges.Get(path); err == nil && path != "" && !strings.HasPrefix(path, "amq.") {
		return c.topic(x), true
	}
	return entry[entity]{}, false
}

var errUnknown = errors.New("the messaging entity could not be found")

func (c *call) get(path string) {
	if e, ok := c.find(path); ok {
		write(c.w, http.StatusOK, e)
		return
	}
	if strings.Contains(path, "/") {
		refuse(c.w, http.StatusNotFound, errUnknown)
		return
	}
	write(c.w, http.StatusOK, nothing)
}

// nothing is Azure's answer about a queue or a topic that does not exist.
var nothing = feed{ID: "Publicly Listed Services", Title: "Publicly Listed Services", Updated: zeroTime}

// deny answers a client whose key lacks the claim manage, in Azure's words. As there, it learns that
// a queue or a topic does not exist.
func (c *call) deny(path string) {
	text, operation := "Manage,EntityRead claims required for this operation", ""
	_, known := c.find(path)
	switch list, method := strings.ToLower(path)+"/", c.r.Method; {
	case strings.HasSuffix(list, subscriptions):
		operation = "EnumerateSubscriptions"
	case strings.Contains(list, subscriptions):
		operation = cmp.Or(map[string]string{http.MethodPut: "CreateOrUpdateSubscription", http.MethodDelete: "DeleteSubscription"}[method], "GetSubscription")
	case method == http.MethodPut:
		text = "Authorization failed for specified action: Manage,EntityWrite."
	case method == http.MethodDelete:
		text = "Authorization failed for specified action: Manage,EntityDelete."
	case !known && !strings.Contains(path, "/") && !strings.HasPrefix(path, "$"):
		write(c.w, http.StatusOK, nothing)
		return
	}
	if operation != "" {
		text = fmt.Sprintf("401 SubCode=40100: Unauthorized : Unauthorized access for '%s' operation.", operation)
	}
	refuse(c.w, http.StatusUnauthorized, errors.New(text))
}

// put makes or updates an entity.
func (c *call) put(path string) {
	var given entry[entity]
	if err := xml.NewDecoder(http.MaxBytesReader(c.w, c.r.Body, maxBody)).Decode(&given); err != nil {
		refuse(c.w, http.StatusBadRequest, err)
		return
	}
	was, exists := c.find(path)
	if c.refused(exists) {
		return
	}
	var err error
	status := http.StatusOK
	if exists {
		err = c.update(path, &given.Content.Is, &was.Content.Is)
	} else {
		status, err = http.StatusCreated, c.declare(path, &given.Content.Is)
	}
	made, ok := c.find(path)
	if err == nil && !ok {
		err = errors.New("the entity was deleted at once")
	}
	switch {
	case errors.Is(err, errNoTopic):
		refuse(c.w, http.StatusNotFound, err)
	case err != nil:
		refuse(c.w, http.StatusBadRequest, inProperties(err))
	default:
		write(c.w, status, made)
	}
}

var errNoTopic = errors.New("the topic does not exist")

// ofArgument finds in a refusal of the broker what an argument is, and what is wrong with it.
var ofArgument = regexp.MustCompile(`invalid arg '([^']+)' for .*?: (.*)$`)

// inProperties is an error in the words of the administration API: of properties, not of arguments.
func inProperties(err error) error {
	found := ofArgument.FindStringSubmatch(err.Error())
	if found == nil {
		return err
	}
	property := map[string]string{
		"x-message-ttl": "DefaultMessageTimeToLive", "x-auto-delete-on-idle": "AutoDeleteOnIdle", "x-lock-duration": "LockDuration", "x-max-delivery-count": "MaxDeliveryCount",
	}[found[1]]
	if property == "" {
		return err
	}
	why := found[2]
	for term, words := range map[string]string{"{value_too_large,": " is too much", "{value_negative,": " is less than 0", "{value_zero,": " is too little"} {
		if n, is := strings.CutPrefix(why, term); is {
			why = strings.TrimSuffix(n, "}") + words
		}
	}
	return fmt.Errorf("%s: %s", property, why)
}

// update changes an entity. That nothing of it changes is not the end: its deferred messages may have missed the last update.
func (c *call) update(path string, given, was *entity) error {
	args, err := given.changes(was)
	if err != nil {
		return err
	}
	if len(args) > 0 {
		args[servicebus.UpdatedArg] = c.Operations.Broker.UnixMillis(c.Operations.Broker.Now())
	}
	change := admin.Changes{VHost: vhostName, Arguments: args}
	if was.XMLName.Local == "TopicDescription" {
		change.Exchange = path
	} else if topic, subscription := servicebus.Split(path); subscription != "" {
		change.Queue = queueName(topic, subscription)
	} else {
		change.Queue = path
	}
	if len(args) > 0 || change.Queue != "" {
		_, err = admin.ChangeArguments.Do(c.r.Context(), c.Operations, c.actor, change)
	}
	return err
}

// refused answers a client that makes what exists, or updates what does not.
func (c *call) refused(exists bool) bool {
	switch update := c.r.Header.Get("If-Match") != ""; {
	case exists && !update:
		refuse(c.w, http.StatusConflict, errors.New("the entity exists"))
	case !exists && update:
		refuse(c.w, http.StatusNotFound, errUnknown)
	default:
		return false
	}
	return true
}

// declare makes an entity.
func (c *call) declare(path string, given *entity) error {
	topic, subscription := servicebus.Split(path)
	if isPart(path) {
		return fmt.Errorf("%s is the end of no entity's name", servicebus.DeferredSuffix)
	}
	d, err := given.described(path)
	if err != nil {
		return err
	}
	kind := strings.TrimSuffix(given.XMLName.Local, "Description")
	unfit := func(err error) error {
		if name, only := given.fixed(&entity{Status: "Active", MaxSizeInMegabytes: maxSize, EnablePartitioning: given.EnablePartitioning}); err == nil && name != "" {
			err = fmt.Errorf("The value for the %s property of a %s can only be %v.", name, kind, only) //nolint:staticcheck // as Azure's words for an existing one
		}
		return err
	}
	o, ctx, now := c.Operations, c.r.Context(), c.Operations.Broker.UnixMillis(c.Operations.Broker.Now())
	if given.XMLName.Local == "TopicDescription" {
		args, err := d.TopicArgs()
		if err = unfit(err); err == nil {
			args[servicebus.CreatedArg] = now
			_, err = admin.DeclareExchange.Do(ctx, o, c.actor, admin.NewExchange{Exchange: path, VHost: vhostName, Type: servicebus.TopicKind, Durable: true, Arguments: args})
		}
		return err
	}
	name, first := path, &rule{Name: servicebus.DefaultRule, Filter: filter{Type: "TrueFilter"}}
	if given.DefaultRuleDescription != nil {
		first = given.DefaultRuleDescription
	}
	filters, err := first.args()
	if err != nil {
		return err
	}
	if subscription != "" {
		if name = queueName(topic, subscription); c.vh.Exchanges.Check(topic) != nil {
			return errNoTopic
		}
	}
	args, err := d.Args()
	if err = unfit(err); err == nil {
		args[servicebus.CreatedArg] = now
		_, err = admin.DeclareQueue.Do(ctx, o, c.actor, admin.NewQueue{Queue: name, VHost: vhostName, Durable: true, Arguments: args})
	}
	if err == nil && subscription != "" {
		err = c.bindRule(topic, name, cmp.Or(first.Name, servicebus.DefaultRule), filters)
	}
	return err
}

func (c *call) delete(path string) {
	topic, subscription := servicebus.Split(path)
	err := operate.ErrNotFound
	switch _, exists := c.find(path); {
	case !exists:
	case subscription != "":
		err = c.deleteQueue(queueName(topic, subscription))
	case c.vh.Queues.Has(path):
		err = c.deleteQueue(path)
	default:
		for _, q := range c.subscriptions(path) {
			if err := c.deleteQueue(q.Name); err != nil && !errors.Is(err, operate.ErrNotFound) {
				refuse(c.w, http.StatusBadRequest, err)
				return
			}
		}
		_, err = admin.DeleteExchange.Do(c.r.Context(), c.Operations, c.actor, admin.ExchangeDeletion{VHost: vhostName, Exchange: path})
	}
	switch {
	case errors.Is(err, operate.ErrNotFound):
		refuse(c.w, http.StatusNotFound, errUnknown)
	case err != nil:
		refuse(c.w, http.StatusBadRequest, err)
	default:
		c.w.WriteHeader(http.StatusOK)
	}
}

func (c *call) deleteQueue(name string) error {
	if aside := name + policy.DeferredSuffix; c.vh.Queues.Has(aside) {
		if err := c.deleteQueue(aside); err != nil {
			return err
		}
	}
	_, err := admin.DeleteQueue.Do(c.r.Context(), c.Operations, c.actor, admin.QueueDeletion{QueuePage: admin.QueuePage{VHost: vhostName, Queue: name}})
	return err
}
