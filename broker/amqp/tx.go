package amqp

// Methods of class tx.
const (
	ClassTx = 90

	TxSelectID     MethodID = ClassTx<<16 | 10
	TxSelectOkID   MethodID = ClassTx<<16 | 11
	TxCommitID     MethodID = ClassTx<<16 | 20
	TxCommitOkID   MethodID = ClassTx<<16 | 21
	TxRollbackID   MethodID = ClassTx<<16 | 30
	TxRollbackOkID MethodID = ClassTx<<16 | 31
)

type TxSelect struct{ empty }

func (*TxSelect) ID() MethodID { return TxSelectID }

type TxSelectOk struct{ empty }

func (*TxSelectOk) ID() MethodID { return TxSelectOkID }

type TxCommit struct{ empty }

func (*TxCommit) ID() MethodID { return TxCommitID }

type TxCommitOk struct{ empty }

func (*TxCommitOk) ID() MethodID { return TxCommitOkID }

type TxRollback struct{ empty }

func (*TxRollback) ID() MethodID { return TxRollbackID }

type TxRollbackOk struct{ empty }

func (*TxRollbackOk) ID() MethodID { return TxRollbackOkID }
