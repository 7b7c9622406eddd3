//! A chat service that is none: it keeps what it is sent, and misbehaves as real ones do.
//!
//! A post has a channel, the client's own id for it, and a text; the service gives it an id of its own, and can be asked
//! whether it has a post of that client's id. What a test wants it to do wrong is its `behave`.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A chat service.
#[derive(Debug, Default)]
pub struct ChatService(Mutex<ChatLog>);

#[derive(Debug, Default)]
struct ChatLog {
    posts: Vec<Post>,
    behaviour: ChatBehaviour,
}

/// Something that was posted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Post {
    /// The service's own id of it.
    pub id: String,
    pub channel: String,
    /// The poster's own id of it.
    pub client_id: String,
    pub text: String,
}

/// The behaviour of the service.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ChatBehaviour {
    /// It keeps what it is sent, and says so.
    #[default]
    Well,
    /// It keeps what it is sent, and what it says gets lost.
    LosesAnswers,
    /// It keeps what it is sent, and says nothing, ever.
    NeverAnswers,
    /// It keeps what it is sent twice, as one that repeats a request of its own.
    PostsTwice,
    /// It keeps nothing, and cannot be asked.
    Down,
    /// It keeps nothing in this channel, and never will.
    Refuses { channel: String },
}

/// The service's answer to a post.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChatAnswer {
    /// It has it, under this id.
    Posted(String),
    /// The connection broke before it said anything.
    Lost,
    /// It says nothing, ever.
    Never,
    /// It will not take it.
    Refused(String),
    /// It cannot be reached.
    Down,
}

impl ChatService {
    /// Behaves so from here on.
    pub fn behave(&self, how: ChatBehaviour) {
        self.kept().behaviour = how;
    }

    /// Posts something.
    pub fn post(&self, channel: &str, client_id: &str, text: &str) -> ChatAnswer {
        let mut kept = self.kept();
        let copies = match &kept.behaviour {
            ChatBehaviour::Down => return ChatAnswer::Down,
            ChatBehaviour::Refuses { channel: closed } if closed == channel => {
                return ChatAnswer::Refused("the channel is archived".to_owned());
            }
            ChatBehaviour::PostsTwice => 2,
            _ => 1,
        };
        for _ in 0..copies {
            let id = format!("post-{}", kept.posts.len() + 1);
            let (channel, client_id, text) = (channel.to_owned(), client_id.to_owned(), text.to_owned());
            kept.posts.push(Post { id, channel, client_id, text });
        }
        match &kept.behaviour {
            ChatBehaviour::LosesAnswers => ChatAnswer::Lost,
            ChatBehaviour::NeverAnswers => ChatAnswer::Never,
            _ => ChatAnswer::Posted(kept.posts.last().expect("it was just posted").id.clone()),
        }
    }

    /// The id of the post that a client calls so; an error if the service cannot be asked.
    pub fn find(&self, channel: &str, client_id: &str) -> Result<Option<String>, String> {
        let kept = self.kept();
        if kept.behaviour == ChatBehaviour::Down {
            return Err("it cannot be reached".to_owned());
        }
        let found = kept.posts.iter().find(|post| post.channel == channel && post.client_id == client_id);
        Ok(found.map(|post| post.id.clone()))
    }

    /// The posts of a channel, in the order in which they came.
    pub fn posts(&self, channel: &str) -> Vec<Post> {
        self.kept().posts.iter().filter(|post| post.channel == channel).cloned().collect()
    }

    fn kept(&self) -> MutexGuard<'_, ChatLog> {
        // Nobody panics while holding it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
