package amqp10

import "slices"

// The descriptors of what is sent in frames and of what that contains.
const (
	codeOpen           = 0x10
	codeBegin          = 0x11
	codeAttach         = 0x12
	codeFlow           = 0x13
	codeTransfer       = 0x14
	codeDisposition    = 0x15
	codeDetach         = 0x16
	codeEnd            = 0x17
	codeClose          = 0x18
	codeError          = 0x1d
	codeSource         = 0x28
	codeTarget         = 0x29
	codeCoordinator    = 0x30
	codeSASLMechanisms = 0x40
	codeSASLInit       = 0x41
	codeSASLOutcome    = 0x44

	StateReceived uint64 = 0x23
	StateAccepted uint64 = 0x24
	StateRejected uint64 = 0x25
	StateReleased uint64 = 0x26
	StateModified uint64 = 0x27
)

// Performative is the content of a frame.
type Performative interface{ visit(*fields) }

// OptUint is a uint that may be absent.
type OptUint struct {
	Set   bool
	Value uint32
}

// Uint is one that is there.
func Uint(n uint32) OptUint { return OptUint{true, n} }

// Unlimited is the default of limits that are absent.
const Unlimited = 1<<32 - 1

// Roles and settlement modes (AMQP 1.0 §2.8).
const (
	RoleSender   = false
	RoleReceiver = true

	SendUnsettled, SendSettled, SendMixed uint8 = 0, 1, 2
	ReceiveFirst, ReceiveSecond           uint8 = 0, 1
)

// The performatives. A field that is absent has its default: zero, if not said otherwise.
type (
	Open struct {
		ContainerID, Hostname                                string
		MaxFrameSize                                         uint32 // Unlimited if absent
		ChannelMax                                           uint16 // 65535 if absent
		IdleTimeout                                          OptUint
		OutgoingLocales, IncomingLocales, Offered, Requested any
		Properties                                           any // Map
	}
	Begin struct {
		RemoteChannel                                  OptUint
		NextOutgoingID, IncomingWindow, OutgoingWindow uint32
		HandleMax                                      uint32 // Unlimited if absent
		Offered, Requested, Properties                 any
	}
	Attach struct {
		Name                           string
		Handle                         uint32
		Role                           bool
		SenderMode                     uint8 // SendMixed if absent
		ReceiverMode                   uint8
		Source                         *Source
		Target                         *Target
		Unsettled                      any
		IncompleteUnsettled            bool
		InitialDeliveryCount           OptUint
		MaxMessageSize                 uint64
		Offered, Requested, Properties any
	}
	Flow struct {
		NextIncomingID                                 OptUint
		IncomingWindow, NextOutgoingID, OutgoingWindow uint32
		Handle, DeliveryCount, LinkCredit, Available   OptUint
		Drain, Echo                                    bool
		Properties                                     any
	}
	Transfer struct {
		Handle                     uint32
		DeliveryID                 OptUint
		DeliveryTag                []byte
		MessageFormat              OptUint
		Settled, More              bool
		ReceiverMode               uint8
		State                      *State
		Resume, Aborted, Batchable bool
	}
	Disposition struct {
		Role      bool
		First     uint32
		Last      OptUint
		Settled   bool
		State     *State
		Batchable bool
	}
	Detach struct {
		Handle uint32
		Closed bool
		Error  *Error
	}
	End   struct{ Ending }
	Close struct{ Ending }
	// Ending is why a session or a connection ends; nil: as it should.
	Ending struct{ Error *Error }

	SASLMechanisms struct{ Mechanisms Array }
	SASLInit       struct {
		Mechanism string
		Response  []byte
		Hostname  string
	}
	SASLOutcome struct{ Code uint8 } // 0 ok, 1 wrong credentials, 2 system error

	// Error says why something ends. Condition is a symbol such as amqp:not-found.
	Error struct {
		Condition, Description string
		Info                   any
	}
	Source struct {
		Address                              any // a string; nil: none
		Durable                              uint32
		ExpiryPolicy                         string
		Timeout                              uint32
		Dynamic                              bool
		DynamicProperties                    any
		DistributionMode                     string
		Filter                               any
		DefaultOutcome, Outcomes, Capability any
	}
	Target struct {
		Address           any
		Durable           uint32
		ExpiryPolicy      string
		Timeout           uint32
		Dynamic           bool
		DynamicProperties any
		Capability        any

		Coordinator bool // it is the target of transactions instead; its fields are not read
	}
	// State is the state of a delivery: its kind, and what that kind has.
	State struct {
		Kind                              uint64
		Error                             *Error // rejected
		DeliveryFailed, UndeliverableHere bool   // modified
		Annotations                       any    // modified
	}
)

func (p *Open) visit(f *fields) {
	f.text(&p.ContainerID)
	f.text(&p.Hostname)
	f.uint(&p.MaxFrameSize, Unlimited)
	f.ushort(&p.ChannelMax, 65535)
	f.opt(&p.IdleTimeout)
	f.values(&p.OutgoingLocales, &p.IncomingLocales, &p.Offered, &p.Requested, &p.Properties)
}

func (p *Begin) visit(f *fields) {
	f.optShort(&p.RemoteChannel)
	f.must(&p.NextOutgoingID)
	f.must(&p.IncomingWindow)
	f.must(&p.OutgoingWindow)
	f.uint(&p.HandleMax, Unlimited)
	f.values(&p.Offered, &p.Requested, &p.Properties)
}

func (p *Attach) visit(f *fields) {
	f.text(&p.Name)
	f.must(&p.Handle)
	f.role(&p.Role)
	f.ubyte(&p.SenderMode, SendMixed)
	f.ubyte(&p.ReceiverMode, ReceiveFirst)
	visitPart(f, &p.Source)
	visitPart(f, &p.Target)
	f.values(&p.Unsettled)
	f.flag(&p.IncompleteUnsettled)
	f.opt(&p.InitialDeliveryCount)
	f.ulong(&p.MaxMessageSize)
	f.values(&p.Offered, &p.Requested, &p.Properties)
}

func (p *Flow) visit(f *fields) {
	f.opt(&p.NextIncomingID)
	f.must(&p.IncomingWindow)
	f.must(&p.NextOutgoingID)
	f.must(&p.OutgoingWindow)
	f.opt(&p.Handle)
	f.opt(&p.DeliveryCount)
	f.opt(&p.LinkCredit)
	f.opt(&p.Available)
	f.flag(&p.Drain)
	f.flag(&p.Echo)
	f.values(&p.Properties)
}

func (p *Transfer) visit(f *fields) {
	f.must(&p.Handle)
	f.opt(&p.DeliveryID)
	f.binary(&p.DeliveryTag)
	f.opt(&p.MessageFormat)
	f.flag(&p.Settled)
	f.flag(&p.More)
	f.ubyte(&p.ReceiverMode, ReceiveFirst)
	visitPart(f, &p.State)
	f.flag(&p.Resume)
	f.flag(&p.Aborted)
	f.flag(&p.Batchable)
}

func (p *Disposition) visit(f *fields) {
	f.role(&p.Role)
	f.must(&p.First)
	f.opt(&p.Last)
	f.flag(&p.Settled)
	visitPart(f, &p.State)
	f.flag(&p.Batchable)
}

func (p *Detach) visit(f *fields) {
	f.must(&p.Handle)
	f.flag(&p.Closed)
	visitPart(f, &p.Error)
}

func (p *Ending) visit(f *fields) { visitPart(f, &p.Error) }

func (p *SASLMechanisms) visit(f *fields) {
	v := any(p.Mechanisms)
	f.values(&v)
	p.Mechanisms, _ = v.(Array)
	p.Mechanisms = slices.DeleteFunc(p.Mechanisms, func(name any) bool { _, is := name.(Symbol); return !is })
}

func (p *SASLInit) visit(f *fields) {
	f.symbol(&p.Mechanism)
	f.binary(&p.Response)
	f.text(&p.Hostname)
}

func (p *SASLOutcome) visit(f *fields) { f.ubyte(&p.Code, 255) }

func (p *Error) visit(f *fields) {
	f.symbol(&p.Condition)
	f.text(&p.Description)
	f.values(&p.Info)
}

func (p *Source) visit(f *fields) {
	f.values(&p.Address)
	f.uint(&p.Durable, 0)
	f.symbol(&p.ExpiryPolicy)
	f.uint(&p.Timeout, 0)
	f.flag(&p.Dynamic)
	f.values(&p.DynamicProperties)
	f.symbol(&p.DistributionMode)
	f.values(&p.Filter, &p.DefaultOutcome, &p.Outcomes, &p.Capability)
}

func (p *Target) visit(f *fields) {
	if p.Coordinator {
		return
	}
	f.values(&p.Address)
	f.uint(&p.Durable, 0)
	f.symbol(&p.ExpiryPolicy)
	f.uint(&p.Timeout, 0)
	f.flag(&p.Dynamic)
	f.values(&p.DynamicProperties, &p.Capability)
}

func (p *State) visit(f *fields) {
	switch p.Kind {
	case StateRejected:
		visitPart(f, &p.Error)
	case StateModified:
		f.flag(&p.DeliveryFailed)
		f.flag(&p.UndeliverableHere)
		f.values(&p.Annotations)
	}
}
