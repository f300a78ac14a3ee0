"""What the service leaves to workers, and the database both of them use."""

from datetime import UTC, datetime

from sqlalchemy import DateTime, String, create_engine, func, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from corvo_sdk import Corvo
from corvo_sdk.outbox import SqlOutbox

app = Corvo("service")
engine = create_engine("sqlite:///service.db", connect_args={"timeout": 10})
outbox = SqlOutbox()


class Base(DeclarativeBase):
    """The tables of the service."""


class User(Base):
    """Somebody who signed up."""

    __tablename__ = "users"

    id: Mapped[int] = mapped_column(primary_key=True)
    email: Mapped[str] = mapped_column(String(200), unique=True)
    welcomed_at: Mapped[datetime | None] = mapped_column(DateTime(timezone=True))


@app.task(queue="welcome", retries=10)
def welcome(user_id: int) -> int:
    """Welcome a user once, however often the job runs; gives how many were welcomed so far."""
    with Session(engine) as session, session.begin():
        # The row is there: a job of the outbox is enqueued after the commit, never before.
        user = session.get_one(User, user_id)
        if user.welcomed_at is None:
            user.welcomed_at = datetime.now(UTC)
        session.flush()
        return session.scalar(select(func.count(User.welcomed_at))) or 0


def create_tables() -> None:
    Base.metadata.create_all(engine)
    with engine.begin() as connection:
        outbox.create(connection)
