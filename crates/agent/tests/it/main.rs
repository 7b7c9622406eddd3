//! The in-process scripted agent survives the same stories as every driver, and its house tells the truth about it.

mod in_process;
