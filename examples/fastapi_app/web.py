"""A service that signs people up, and enqueues in the same transaction."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from fastapi import FastAPI, HTTPException
from jobs import User, app, create_tables, engine, outbox, welcome
from pydantic import BaseModel, Field
from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from corvo_sdk.outbox import Relay


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncGenerator[None, None]:
    """Relay in a thread of the service; with several services running, they share the work."""
    create_tables()
    relay = Relay(engine.connect, app.client, outbox=outbox)
    relay.start()
    yield
    relay.stop()
    app.close()


web = FastAPI(lifespan=lifespan)


class SignUp(BaseModel):
    """What is posted."""

    email: str = Field(pattern=r"^\S+@\S+$", max_length=200)


@web.post("/users", status_code=201)
def sign_up(new: SignUp) -> dict[str, int]:
    """Add a user and the job that follows: both, or neither."""
    try:
        with Session(engine) as session, session.begin():
            user = User(email=new.email)
            session.add(user)
            session.flush()  # gives the id
            outbox.add(session, welcome.call(user.id))
            return {"id": user.id}
    except IntegrityError as error:
        raise HTTPException(409, "this address is taken") from error


@web.get("/users")
def users() -> list[dict[str, object]]:
    """List everybody, with who was welcomed."""
    with Session(engine) as session:
        found = session.scalars(select(User).order_by(User.id)).all()
        return [{"email": user.email, "welcomed": user.welcomed_at is not None} for user in found]
